# featherjet's front door. Each target sets up what it needs in .venv (python3, pip and make are all it assumes).
PYTHON ?= python3
BIN := .venv/bin
# Coverage costs little where Python monitors lines, which it does from 3.12 on.
COVERAGE = $(shell $(BIN)/python -c 'import sys; print("--cov" if sys.version_info >= (3, 12) else "")')
.DEFAULT_GOAL := help
.PHONY: help demo test lint clean

help:   ## list the targets
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: .venv/.demo  ## set up, then all derivatives of the built-in quadruped, verified, with pictures in demo/
	$(BIN)/featherjet demo --out demo

test: lint  ## set up, then lint and every test
	COVERAGE_CORE=sysmon $(BIN)/python -m pytest -n 2 --dist loadgroup $(COVERAGE)
	@$(if $(COVERAGE),,echo 'coverage: not measured, since it doubles the time before Python 3.12; make test COVERAGE=--cov measures it')

lint: .venv/.test  ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

.venv/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -e '.[plots]'
	touch $@

.venv/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -e '.[test]'
	touch $@ .venv/.demo

clean:  ## remove the environment and everything generated
	rm -rf .venv demo build dist .pytest_cache .ruff_cache
