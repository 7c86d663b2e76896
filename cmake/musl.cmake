# Builds with musl, by the musl-gcc of Debian's musl-tools. That has no headers of the kernel's:
# they are those of the system, and only they.
# No C++: the system's libstdc++ is made for glibc.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_ASM_COMPILER musl-gcc)

execute_process(COMMAND cc -print-multiarch OUTPUT_VARIABLE multiarch OUTPUT_STRIP_TRAILING_WHITESPACE)
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
foreach(name linux asm-generic ${multiarch}/asm)
	cmake_path(GET name FILENAME last)
	file(CREATE_LINK /usr/include/${name} ${kernel_headers}/${last} SYMBOLIC)
endforeach()
set(CMAKE_C_FLAGS_INIT "-idirafter ${kernel_headers}")
