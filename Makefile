# The two commands for newcomers are `make demo` and `make test`. Each sets up what it needs.

PY := .venv/bin/python
SERVERS ?= all
# Most tests wait more than they work: more of them at once than there are processors.
WORKERS ?= 7
# tests/install builds packages and tests/endurance takes minutes: they have targets of their own.
SUITE := --ignore tests/install --ignore tests/endurance tests
MINUTES ?= 20
JOBS ?= $(shell nproc 2>/dev/null || echo 1)

C_FILES = $(shell find csrc include tests/c tests/fault benchmarks/c -name '*.[ch]' -o -name '*.cpp' 2>/dev/null)
NATIVE_INPUTS := $(shell find csrc include -name '*.[ch]' -o -name '*.lua' -o -name '*.py' -o -name '*.txt' -o -name '*.in') \
	setup.py pyproject.toml $(wildcard packaging/cwist_build/*.py) \
	$(wildcard cwist_jq/*.c cwist_jq/*.h cwist_jq/_ffi_build.py)

DEB_SUITES ?= bookworm trixie testing

# gcc or clang
SANITIZER_CC ?= gcc
# The labels of the C tests that valgrind watches; `memcheck` means those on servers too.
MEMCHECK ?= unit
ASAN_ENV := ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=1 \
	UBSAN_OPTIONS=print_stacktrace=1
TSAN_ENV := TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0

# One thread at a time runs there: without fairness a busy one would keep the others out.
VALGRIND := valgrind;-q;--fair-sched=try;--suppressions=$(CURDIR)/tests/sanitizers/valgrind.supp;--error-exitcode=9;--leak-check=full;--show-leak-kinds=definite;--errors-for-leak-kinds=definite

# Optimized, for the warnings that only come with that; valgrind runs it too.
GCC_BUILD := build/gcc -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS=-g

.DEFAULT_GOAL := help
# The tests have time limits: two suites at once (make -j) would slow each other down.
.NOTPARALLEL:
.PHONY: help setup build build-c clean demo \
	test test-c test-python test-aio endurance torture \
	check check-format check-lint check-workflows check-types check-headers check-gcc check-clang \
	check-asan check-tsan check-valgrind check-man check-abi abi-baseline \
	wheel sdist-check install-check try-python deb deb-check \
	docs matrix platforms \
	bench bench-build bench-peers bench-report bench-profile

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | \
		awk -F'|' '{ printf "  make %-14s %s\n", $$1, $$2 }'

# ---- set-up and build ----

setup: ## Install what is missing: system packages, .venv, test servers
	@.ci/setup

build: build-c .venv/native ## Build the C library and the Python package

build-c: | setup
	@echo "build: the C library, in build/c"
	@cmake -S csrc -B build/c -DCWIST_JQ_TESTS=ON >build/c.log 2>&1 || { cat build/c.log; exit 1; }
	@cmake --build build/c -j $(JOBS) >>build/c.log 2>&1 || { cat build/c.log; exit 1; }

.venv/native: $(NATIVE_INPUTS) tests/requirements.txt | setup
	@echo "build: the Python package, in place"
	@rm -f cwist_jq/_native*.so
	@$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e . \
		>build/python.log 2>&1 || { cat build/python.log; exit 1; }
	@touch $@

# ---- tests ----

test: test-c test-python ## Build, then run the C tests and the Python tests on private servers

test-c: build
	@$(PY) -m tests.run_c build/c --servers $(SERVERS) --jobs 8 --again

test-python: build
	@$(PY) -m tests.run_python --workers $(WORKERS) $(SUITE)

test-aio: build ## Run the conformance tests through cwist_jq.aio, on all servers
	@$(PY) -m tests.run_python --workers $(WORKERS) --api aio tests/conformance

endurance: build ## Run minutes of crashes, deploys, cancelled tasks and many dead letters
	@$(PY) -m pytest -q -n 2 --timeout 500 tests/endurance

torture: build ## Kill everything at random and prove that nothing is lost: MINUTES=20 [SEED=…]
	@$(PY) -m tests.fault.torture --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# ---- checks ----

check: check-format check-lint check-workflows check-types check-headers check-gcc check-clang check-asan check-tsan check-valgrind check-man check-abi ## Format, lint, types, warnings, exports, sanitizers, man pages, ABI
	@echo "check: all clean"

check-format: | setup
	@echo "check: format"
	@.venv/bin/clang-format --dry-run -Werror $(C_FILES)
	@.venv/bin/ruff format --check -q .

check-lint: | setup
	@echo "check: lint"
	@.venv/bin/ruff check -q .
	@cd csrc/redis/lua && luacheck -q --no-color .

check-workflows: .venv/packaging
	@echo "check: workflows, shell scripts, the list of wheels"
	@.ci/check-workflows

check-types: .venv/native
	@echo "check: types"
	@.venv/bin/mypy cwist_jq packaging .ci/test-wheel.py tests benchmarks

check-headers: | setup
	@echo "check: headers"
	@.ci/check-headers

check-gcc: | setup
	@echo "check: warnings of gcc, export list"
	@.ci/build-c $(GCC_BUILD) -DCWIST_JQ_TEST_WRAPPER=
	@$(PY) csrc/tools/check_exports.py build/gcc/libcwist_jq.so

check-clang: | setup
	@echo "check: warnings of clang"
	@.ci/build-c build/clang -DCMAKE_C_COMPILER=clang

check-asan: | setup
	@echo "check: C tests under ASan and UBSan, $(SANITIZER_CC)"
	@.ci/build-c build/asan-$(SANITIZER_CC) -DCWIST_JQ_SANITIZE=address,undefined -DCMAKE_C_COMPILER=$(SANITIZER_CC)
	@$(ASAN_ENV) $(PY) -m tests.run_c build/asan-$(SANITIZER_CC) --jobs 6

check-tsan: | setup
	@echo "check: thread tests under TSan, $(SANITIZER_CC)"
	@.ci/build-c build/tsan-$(SANITIZER_CC) -DCWIST_JQ_SANITIZE=thread -DCMAKE_C_COMPILER=$(SANITIZER_CC)
	@$(TSAN_ENV) $(PY) -m tests.run_c build/tsan-$(SANITIZER_CC) --label tsan --jobs 4

check-valgrind: | setup
	@echo "check: C tests under valgrind: $(MEMCHECK)"
	@.ci/build-c $(GCC_BUILD) "-DCWIST_JQ_TEST_WRAPPER=$(VALGRIND)"
	@$(PY) -m tests.run_c build/gcc --label "$(MEMCHECK)" --jobs 2

check-man: | setup
	@echo "check: man pages"
	@.ci/check-man

check-abi: build-c
	@echo "check: ABI"
	@$(PY) csrc/tools/check_abi.py build/c/libcwist_jq.so

abi-baseline: build-c ## Accept the ABI as it is now: csrc/abi
	@$(PY) csrc/tools/check_abi.py --renew build/c/libcwist_jq.so

# ---- documentation ----

.venv/docs: docs/requirements.txt | setup
	@echo "docs: installing docs/requirements.txt"
	@$(PY) -m pip install -q --disable-pip-version-check -r docs/requirements.txt \
		>build/docs.log 2>&1 || { cat build/docs.log; exit 1; }
	@touch $@

docs: .venv/native .venv/docs ## Build the documentation, with its reference, into build/docs
	@$(PY) -m sphinx -q -W --keep-going -b html -d build/doctrees docs build/docs
	@echo "docs: build/docs/index.html"

# ---- packages ----

.venv/packaging: packaging/requirements.txt packaging/repair-tools.txt | setup
	@echo "packaging: installing packaging/requirements.txt"
	@$(PY) -m pip install -q --disable-pip-version-check -r packaging/requirements.txt \
		>build/packaging.log 2>&1 || { cat build/packaging.log; exit 1; }
	@touch $@

wheel: .venv/packaging ## Build a wheel for other machines, check it, and try it with both engines
	@.ci/wheel

sdist-check: | setup ## Build from the sdist without a network, and with each needed piece missing
	@.ci/sdist-check

install-check: build wheel ## Install the C library, and run a project that uses it, in each way
	@echo "check: installed trees"
	@$(PY) -m pytest -q --timeout 300 tests/install

try-python: | setup ## Install with another Python and try it: TRY_PYTHON=python3.9 [TRY_FROM=dist]
	@test -n "$(TRY_PYTHON)" || { echo "say which: make try-python TRY_PYTHON=python3.9" >&2; exit 2; }
	@.ci/try-python "$(TRY_PYTHON)" $(TRY_FROM)

deb: ## Build the Debian packages of HEAD into dist/deb
	@.ci/deb

deb-check: deb | setup ## Try the Debian packages in bare roots of DEB_SUITES; as root
	@.ci/try-deb $(DEB_SUITES)

# ---- other systems ----

matrix: ## The suite and the packages in roots of Debian 12, 13 and testing; as root; ROOTS="debian13"
	@.ci/matrix $(if $(CHECK),--check) $(ROOTS)

.venv/platforms: packaging/requirements-platforms.txt | setup
	@$(PY) -m pip install -q --disable-pip-version-check -r packaging/requirements-platforms.txt
	@touch $@

platforms: .venv/platforms ## Build for musl, ARM, Windows and macOS, and run the tests where an emulator can; PLATFORMS="windows-x86_64"
	@.ci/setup .ci/packages-platforms.txt
	@.ci/platforms $(PLATFORMS)

# ---- demo ----

demo: .venv/native ## Show the queue at work on private servers of both engines, in about 10 s
	@$(PY) -m benchmarks.demo

# ---- benchmarks ----

BENCH_RESULTS := build/bench/results.json
# Names of benchmarks/peers: all of them, or PEERS="huey rq".
PEERS ?=

bench-build: .venv/native
	@echo "bench: building the programs, in build/bench"
	@cmake -S benchmarks/c -B build/bench >build/bench.log 2>&1 || { cat build/bench.log; exit 1; }
	@cmake --build build/bench -j $(JOBS) >>build/bench.log 2>&1 || { cat build/bench.log; exit 1; }

.venv/benchmarks: benchmarks/requirements.txt | setup
	@$(PY) -m pip install -q --disable-pip-version-check -r benchmarks/requirements.txt \
		>build/benchmarks.log 2>&1 || { cat build/benchmarks.log; exit 1; }
	@touch $@

bench: bench-build ## Measure against the bare client loops, and write docs/performance.md; BENCH="--full"
	@$(PY) -m benchmarks.run --out $(BENCH_RESULTS) $(BENCH)
	@$(MAKE) --no-print-directory bench-report

bench-peers: bench-build ## Measure other Python queues, each in an environment of its own; PEERS="huey rq"
	@$(PY) -m benchmarks.run_peers --out $(BENCH_RESULTS) $(PEERS)

bench-profile: bench-build ## Count instructions, system calls and server commands of one operation
	@$(PY) -m benchmarks.run --groups costs --out $(BENCH_RESULTS) $(BENCH)

bench-report: .venv/benchmarks ## Write the results into docs/performance.md
	@$(PY) -m benchmarks.report $(BENCH_RESULTS)

clean: ## Remove what was built; the servers and .venv stay
	rm -rf build dist *.egg-info cwist_jq/*.so cwist_jq/include cwist_jq/lib .venv/native .mypy_cache .pytest_cache .ruff_cache
	find csrc cwist_jq packaging tests benchmarks -type d "(" -name __pycache__ -o -name .ruff_cache ")" -prune -exec rm -rf {} +

$(shell mkdir -p build)
