# The front door. CMake does the work; see CMakePresets.json for the builds there are.

BUILD       ?= build
JOBS        ?= $(shell nproc)
PREFIX      ?= /usr/local
VARIANTS    ?= release debug runq4
CMAKE_FLAGS ?=

export BUILD JOBS CMAKE_FLAGS
export CMAKE_GENERATOR ?= $(if $(shell command -v ninja),Ninja,Unix Makefiles)
MAKEFLAGS += --no-print-directory

.PHONY: all demo test test-long test-real soak test-asan test-tsan test-aarch64 test-musl test-models test-sim test-faults test-strangers fuzz test-packages bench examples install reference \
	dist amalgamation deb clean help
all: build-release

help:
	@echo "make                 build the library: $(BUILD)/release"
	@echo "make demo            build and run examples/demo.c"
	@echo "make test            all tests, in these builds: $(VARIANTS)"
	@echo "                     (one: make test VARIANTS=debug CTEST_FLAGS='-R chan')"
	@echo "make test-long       measurements of time: shares, lateness, convoys"
	@echo "make test-real       client libraries against redis, PostgreSQL, nginx"
	@echo "make soak            everything at random, for SECONDS (an hour)"
	@echo "make test-asan       all tests with AddressSanitizer and UBSan"
	@echo "make test-tsan       all tests with ThreadSanitizer"
	@echo "make test-aarch64    all tests on 64-bit ARM, under qemu-user"
	@echo "make test-musl       all tests with musl for libc"
	@echo "make test-models     models of what everything rests on, by Spin"
	@echo "make test-faults     every system call and allocation fails once; CPU=60 for a sample"
	@echo "make test-strangers  signals, tracers, stops and ends under load, for minutes"
	@echo "make fuzz            libFuzzer on all that reads foreign bytes, SECONDS=60 each"
	@echo "make test-sim        the runtime under simulation, SEEDS of each scene"
	@echo "make bench           the benchmarks, beside Go and others"
	@echo "                     (some: make bench ONLY=pingpong,yield PEERS=go PROCS=1,2 SCALE=)"
	@echo "                     (what each mechanism gains: make bench ABLATE=1)"
	@echo "make examples        all examples, beside Go where there is one (some: ONLY=real)"
	@echo "make reference       the manual as a web site: $(BUILD)/reference/index.html"
	@echo "make install         into PREFIX ($(PREFIX)), under DESTDIR if set"
	@echo "make dist            the source as an archive: $(BUILD)/goro-VERSION.tar.gz"
	@echo "make amalgamation    the library as two files: $(BUILD)/amalgamation/goro.c and goro.h"
	@echo "make deb             Debian packages: $(BUILD)/deb"
	@echo "make test-packages   these, built and used; Debian packages in a fresh Debian"
	@echo "make build-PRESET    any build of CMakePresets.json"
	@echo "make clean           remove $(BUILD)"

# Configures and builds; silent unless there is something to say.
build-%:
	@tools/setup build
	@mkdir -p $(BUILD)
	@{ cmake --preset $* -B $(BUILD)/$* $(CMAKE_FLAGS) >$(BUILD)/$*.log 2>&1 && \
		cmake --build $(BUILD)/$* -j $(JOBS) >$(BUILD)/$*.log 2>&1; } || \
		{ cat $(BUILD)/$*.log; exit 1; }
	@! grep -q warning: $(BUILD)/$*.log || cat $(BUILD)/$*.log

demo: build-release
	@$(BUILD)/release/examples/demo

test:
	@test/run $(VARIANTS)

test-long:
	@LONG=1 test/run release

test-real:
	@test/real/run

SECONDS ?= 3600
soak:
	@test/soak/run $(SECONDS)

test-asan test-tsan test-aarch64 test-musl:
	@test/run $(@:test-%=%)

test-models:
	@test/models/run

test-faults:
	@test/faults/run $(CPU)

test-strangers:
	@test/strangers/run

fuzz:
	@test/fuzz/run $(if $(filter undefined file,$(origin SECONDS)),60,$(SECONDS)) $(ONLY)

# A minute in CI; SEEDS=10000 takes some minutes.
test-sim:
	@mkdir -p $(BUILD)
	@{ cmake --preset sim -B $(BUILD)/sim $(CMAKE_FLAGS) >$(BUILD)/sim.log 2>&1 && \
		cmake --build $(BUILD)/sim --target sim_scenes_test -j $(JOBS) >$(BUILD)/sim.log 2>&1; } || \
		{ cat $(BUILD)/sim.log; exit 1; }
	@test/sim/run $(SEEDS)

bench:
	@tools/setup bench || echo "going on without what is missing"
	@bench/run $(if $(ONLY),--only $(ONLY)) $(if $(PEERS),--peers $(PEERS)) $(if $(ABLATE),--ablate) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(PROCS),--procs $(PROCS)) \
		$(if $(filter undefined,$(origin SCALE)),,--scale '$(SCALE)')

install: build-release
	@cmake --install $(BUILD)/release --prefix $(PREFIX) >/dev/null
	@test -n "$(DESTDIR)" || test "$$(id -u)" != 0 || ldconfig
	@echo "installed in $(DESTDIR)$(PREFIX)"

examples: build-release
	@BUILD_DIR=$(BUILD)/release examples/run $(ONLY)

reference:
	@tools/setup reference
	@tools/reference $(BUILD)/reference

# The last commit, not the work tree; the same bytes whenever and wherever it is made.
VERSION = $(shell sed -n 's/^project.goro VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)
dist:
	@mkdir -p $(BUILD)
	@git -c tar.umask=022 archive --prefix=goro-$(VERSION)/ -o $(BUILD)/goro-$(VERSION).tar HEAD
	@gzip -9nf $(BUILD)/goro-$(VERSION).tar

amalgamation:
	@tools/setup amalgamation
	@tools/amalgamate $(BUILD)/amalgamation

deb: dist
	@tools/setup deb
	@packaging/build-deb $(BUILD)/goro-$(VERSION).tar.gz $(BUILD)/deb

test-packages: dist
	@tools/setup packages
	@packaging/test $(BUILD)

clean:
	@rm -rf $(BUILD)
