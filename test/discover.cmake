# Writes LIST, a file of add_test() calls that ctest reads, for the tests in PROGRAM, which
# was made from SOURCE. See test.h for the comments in SOURCE that are looked for here.

cmake_path(GET PROGRAM FILENAME name)
string(REGEX REPLACE "_test$" "" name ${name})

# The tests, as a list of "NAME SECONDS". A program that does not use test.h is one test.
file(STRINGS ${SOURCE} uses_test_h REGEX "#include \"test\\.h\"|^(GO_)?TEST(_TIMEOUT)?\\(")
if(uses_test_h)
	execute_process(COMMAND ${LAUNCHER} ${PROGRAM} --timeouts
		OUTPUT_VARIABLE tests RESULT_VARIABLE result TIMEOUT 60)
	string(REGEX MATCHALL "[^ \n]+ [0-9]+" tests "${tests}")
	if(NOT result EQUAL 0 OR NOT tests)
		file(REMOVE ${PROGRAM})
		message(FATAL_ERROR "${PROGRAM} --timeouts: ${result}, tests: ${tests}")
	endif()
else()
	set(tests "- 60")
endif()

set(variants "")
file(STRINGS ${SOURCE} markers REGEX "/\\* test: [a-z ]*\\*/")
if(markers MATCHES "/\\* test: procs \\*/")
	string(REPLACE "," ";" variants "${PROCS}")
endif()
set(labels ${name})
if(markers MATCHES "/\\* test: long \\*/")
	list(APPEND labels long)
endif()
set(serial OFF)
if(markers MATCHES "/\\* test: serial \\*/")
	set(serial ON)
endif()

if(markers MATCHES "/\\* test: leaks \\*/")
	string(REPLACE detect_leaks=0 detect_leaks=${LEAKS} ENVIRONMENT "${ENVIRONMENT}")
endif()

set(text "")
# Adds the test as ctest will know it; more is its additional environment.
function(add id test timeout more)
	set(command "")
	foreach(word IN LISTS LAUNCHER PROGRAM test)
		string(APPEND command " [==[${word}]==]")
	endforeach()
	string(APPEND text "add_test([==[${id}]==]${command})\n"
		"set_tests_properties([==[${id}]==] PROPERTIES\n"
		"  ENVIRONMENT [==[${ENVIRONMENT};${more}]==]\n"
		"  LABELS [==[${labels}]==] RUN_SERIAL ${serial} SKIP_RETURN_CODE 77 TIMEOUT ${timeout})\n")
	set(text "${text}" PARENT_SCOPE)
endfunction()

foreach(line IN LISTS tests)
	string(REGEX MATCH "^([^ ]+) ([0-9]+)$" line "${line}")
	set(test ${CMAKE_MATCH_1})
	# The program minds the limit itself, and is given time to show where it hangs.
	math(EXPR timeout "${CMAKE_MATCH_2} * ${SCALE} + 15")
	set(id ${name}.${test})
	if(NOT uses_test_h)
		set(id ${name})
		set(test "")
	endif()
	if(NOT variants)
		add(${id} "${test}" ${timeout} "")
	endif()
	foreach(procs IN LISTS variants)
		add(${id}@${procs} "${test}" ${timeout} GORO_MAXPROCS=${procs})
	endforeach()
endforeach()
file(WRITE ${LIST} "${text}")
