# featherjet's front door. Each target sets up what it needs in .venv; it assumes only python3, pip and make
# (on Windows also bash, as Git for Windows brings it).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
ifeq ($(OS),Windows_NT)
SHELL := bash
endif
# Counting lines costs little from Python 3.12 on; before, it doubles the time, and `make coverage` does it.
COVERAGE = $(shell $(BIN)/python -c 'import sys; print("--cov" if sys.version_info >= (3, 12) else "")')
# A local version: it matches the builds for CPUs alone, and never those that bring gigabytes of CUDA along.
TORCH ?= 2.13.0+cpu
.DEFAULT_GOAL := help
OLDEST ?= python3.10
.PHONY: help demo docs quick test oldest emulated coverage fuzz soak lint smoke release clean

help:   ## list the targets
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: $(VENV)/.demo  ## set up, then all derivatives of the built-in quadruped, verified, with pictures in demo/
	$(BIN)/featherjet demo --out demo

docs: $(VENV)/.docs  ## set up, then build the documentation into site/; open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build -q

quick: $(VENV)/.test  ## after each change, in three minutes: the tests that it touches, and one of each kind of the rest
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/files.py
	$(BIN)/python tests/quick.py

test: lint  ## set up, then lint and every test
	@$(if $(COVERAGE),,echo 'coverage is measured from Python 3.12 on; here, make coverage does it')
	COVERAGE_CORE=sysmon $(BIN)/python -m pytest -n 2 --dist loadgroup $(COVERAGE)

oldest:  ## every test with the oldest versions that pyproject.toml allows, on the oldest Python, OLDEST=python3.10
	test -x $(VENV)-oldest/bin/python || $(OLDEST) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install -q --upgrade 'pip>=25' uv
	$(VENV)-oldest/bin/uv pip install -q --python $(VENV)-oldest/bin/python --resolution lowest-direct -e '.[test]'
	$(VENV)-oldest/bin/python tools/oldest.py
	$(VENV)-oldest/bin/python -m pytest -n 2 --dist loadgroup $(TESTS)

emulated: $(VENV)/.test  ## tests on an emulated aarch64, on Debian; its results are compared with those of this machine
	mkdir -p $(VENV)-emulated
	$(BIN)/python tools/emulated.py $(VENV)-emulated $(TESTS)

coverage: $(VENV)/.test  ## every test, and which lines they run (math, algorithms and compilers left out before 3.12)
	COVERAGE_CORE=sysmon $(BIN)/python -m pytest -n 2 --dist loadgroup $(or $(COVERAGE),--cov --cov-config=tools/coverage.toml)

fuzz: $(VENV)/.test  ## random programs for the compiler, and mutants of files, for MINUTES=120 or COUNT=N of each
	-$(BIN)/python -m pip install -q atheris  # not on every system; without it, mutants alone
	cd tests && export PYTHONPATH=. && \
	{ $(abspath $(BIN))/python -m fuzz.programs $(if $(COUNT),--count $(COUNT),$(or $(MINUTES),120)) & } && \
	{ $(abspath $(BIN))/python -m fuzz $(if $(COUNT),--mutants $(COUNT),$(or $(MINUTES),120)); files=$$?; wait $$! && exit $$files; }

soak: $(VENV)/.test  ## threads, forks, kills, cache wipes and memory limits for MINUTES=30; results and memory at the end
	cd tests && PYTHONPATH=. $(abspath $(BIN))/python -m soak $(or $(MINUTES),30)

lint: $(VENV)/.test  ## ruff, pyright, and what no file may have (tools/files.py)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/files.py
	$(BIN)/pyright --pythonpath $(BIN)/python

smoke: demo  ## the demo, and the derivatives of two more robots by complex step; needs no Pinocchio
	$(BIN)/featherjet check arm
	$(BIN)/featherjet check humanoid

release: $(VENV)/.release  ## build wheel and sdist in dist/ twice, compare and check them, and try the wheel
	rm -rf dist dist-again
	$(BIN)/python -m build
	$(BIN)/python -m build --outdir dist-again
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/check_release.py dist dist-again
	rm -rf dist-again

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25'  # older ones search for hours on Python 3.10
	$(BIN)/python -m pip install -q -e '.[plots]'
	touch $@

$(VENV)/.docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[docs]'
	touch $@

$(VENV)/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25'
	$(BIN)/python -m pip install -q -e '.[test]'
	$(BIN)/python -m pip install -q --retries 1 --timeout 10 --only-binary :all: \
		--extra-index-url https://download.pytorch.org/whl/cpu 'torch==$(TORCH)' \
		|| echo 'no PyTorch $(TORCH) for this Python: its tests are skipped'
	touch $@ $(VENV)/.demo $(VENV)/.docs

$(VENV)/.release: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[release]'
	touch $@

clean:  ## remove the environment and everything generated
	rm -rf .venv .venv-oldest .venv-emulated demo site build dist dist-again .pytest_cache .ruff_cache
