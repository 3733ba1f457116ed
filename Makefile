# The entry points of the project; `make help` lists them.
#
#   PYTHON  interpreter that makes the environment           make setup PYTHON=python3.12
#   TORCH   what pip is asked for instead of the pinned one  make setup TORCH=torch==2.4.1
#   VENV    where the environment lives                      make test VENV=/tmp/venv
#   ARGS    more arguments for pytest or the benchmark       make test ARGS="tests/dual -k decode"
#   WORKERS processes that share the test files              make test WORKERS=8
#   PYTHONS, TORCHES  what the matrix is of                  make matrix TORCHES="2.5.1 2.13.0"
#   SOURCE  checkout of fairseq whose tests are run          make fairseq-tests SOURCE=../fairseq
#   PLAIN   interpreter with fairseq alone, to compare with  make fairseq-tests PLAIN=python
#   PACKAGE, COUNT, SEED  what is mutated                    make mutation PACKAGE=dual COUNT=30

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow matrix fairseq-tests campaign bench bench-growth bench-smoke results docs browser lint style mutation clean

PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
ARGS ?=
WORKERS ?= 2
PACKAGE ?=
COUNT ?= 15
SEED ?= 1
SOURCE ?=
PLAIN ?=
PYTHONS ?=
TORCHES ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
STAMP := $(VENV)/.setup-done
PINS := $(VENV)/constraints.txt
PINNED := $(shell grep -o '^torch==[0-9.]*' constraints.txt)
# files stay whole: many tests of a file share one small training
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

# The models here are small and several processes share the machine: one arithmetic thread each
# unless the user says otherwise. The MALLOC variables stop glibc from handing large buffers back
# to the kernel at every free, which costs about a third of the time of training on CPU.
export OMP_NUM_THREADS ?= 1
export MALLOC_MMAP_THRESHOLD_ ?= 8589934592
export MALLOC_TRIM_THRESHOLD_ ?= 8589934592
export MALLOC_TOP_PAD_ ?= 268435456
export PATH := $(abspath $(BIN)):$(PATH)

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 14

setup: $(STAMP)  ## make .venv with everything pinned by constraints.txt

$(STAMP): setup.py constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; ok = (3, 9) <= v < (3, 15); \
	  sys.exit(None if ok else "setup: Python 3.9 to 3.14 is needed, %s is %s; name another one: \
	make setup PYTHON=python3.11" % (sys.executable, sys.version.split()[0]))'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# torch is named by TORCH; another release than the pinned one asks for a sympy of its own
	grep -vE '^torch==$(if $(filter $(PINNED),$(TORCH)),,|^sympy==)' constraints.txt > $(PINS)
	$(PIP) install -q -c $(PINS) "$(TORCH)"
	@# torch before 2.3 was built for numpy 1
	if $(BIN)/python -c 'import sys; from importlib.metadata import version; \
	  sys.exit(tuple(map(int, version("torch").split(".")[:2])) >= (2, 3))'; then \
	  sed -i.old '/^numpy==/d' $(PINS); echo 'numpy<2' >> $(PINS); \
	fi
	$(PIP) install -q -c $(PINS) "$(TORCH)" setuptools wheel cython numpy
	$(PIP) install -q -c $(PINS) "$(TORCH)" -e '.[dev]'
	@# without dependencies: those of fairseq 0.12.2 have metadata that newer pips refuse
	$(PIP) install -q -c $(PINS) --no-deps fairseq==0.12.2
	@if command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null; then \
	  set -x; $(PIP) install -q -c $(PINS) --no-build-isolation fastBPE; \
	else \
	  echo "setup: no C++ compiler found: fastBPE is left out, '--bpe fastbpe' will not work;" \
	    "'--bpe sentencepiece' does"; \
	fi
	@touch $@

demo: setup  ## train a small model on an embedded corpus, translate both ways, print the scores
	$(BIN)/python examples/demo/run.py

test: setup  ## the fast tests
	$(PYTEST) $(ARGS)

test-slow: setup  ## all tests
	$(PYTEST) -m 'slow or not slow' $(ARGS)

matrix: setup  ## the tests on the Pythons that are here x versions of torch, into docs/compat.md
	nice $(BIN)/python tests/campaigns/versions.py --into docs/compat.md \
	  $(PYTHONS:%=--python %) $(TORCHES:%=--torch %) $(ARGS)

fairseq-tests: setup  ## fairseq's own tests, of the checkout SOURCE, into build/fairseq-tests.md
	@test -n "$(SOURCE)" || { echo "fairseq-tests: SOURCE=FOLDER is missing: a checkout of" \
	  "fairseq v0.12.2, whose folder tests/ is run"; exit 2; }
	PYTHONPATH=tests $(BIN)/python -m campaigns.fairseq_suite "$(SOURCE)" \
	  --into build/fairseq-tests.md $(if $(PLAIN),--plain "$(PLAIN)") $(ARGS)

campaign: setup  ## kill 250 trainings, end 500, type odd lines, draw pairs of options; into docs/reliability.md
	$(BIN)/python tests/campaigns/interrupted.py --into docs/reliability.md $(ARGS)
	$(BIN)/python tests/campaigns/aborts.py --into docs/reliability.md
	$(BIN)/python tests/campaigns/odd_lines.py --into docs/reliability.md
	$(BIN)/python tests/campaigns/option_pairs.py

bench: setup  ## speed and memory beside stock fairseq, into docs/benchmarks: half an hour
	$(BIN)/python benchmarks/run.py --into docs/benchmarks/README.md $(ARGS)
	$(BIN)/python docs/site/results.py

bench-growth: setup  ## how time grows with the input, into docs/benchmarks: about 25 minutes
	$(BIN)/python benchmarks/growth.py --into docs/benchmarks/README.md $(ARGS)
	$(BIN)/python docs/site/results.py

bench-smoke: setup  ## a few ratios to stock fairseq against stored ones: two minutes
	$(BIN)/python benchmarks/smoke.py $(ARGS)

results: setup  ## make the tables and pictures of the results pages from docs/results/data
	$(BIN)/python docs/site/results.py

docs: setup  ## build the manual in build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -f docs/site/mkdocs.yml
	@echo "docs: build/docs/index.html; with search: python -m http.server -d build/docs"

browser: setup  ## look at every page of the manual with Chromium, which must be installed
	$(PIP) install -q -c $(PINS) "$(TORCH)" -e '.[browser]'
	$(BIN)/python -m pytest -m 'slow or not slow' -rs tests/test_browser.py $(ARGS)

lint: setup  ## ruff, both checks, and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=examples/demo $(BIN)/mypy examples/demo
	MYPYPATH=examples $(BIN)/mypy examples/experiments examples/corpora examples/{run,prepare,score}.py

style: setup  ## types, names, comments and docstrings in numbers
	$(BIN)/python tests/style/measure.py

mutation: setup  ## change lines of PACKAGE one at a time; which changes does no test notice?
	$(PIP) install -q -c $(PINS) "$(TORCH)" -e '.[mutation]'
	nice $(BIN)/python tests/mutation/run.py --package "$(PACKAGE)" --count $(COUNT) \
	  --seed $(SEED) $(ARGS)

clean:  ## remove what was built; the environment stays
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
