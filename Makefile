# Two targets matter to a newcomer: `make demo` and `make test`. Both set up everything in .venv.

VENV ?= .venv
# Which Python to use; scripts/find-python looks for one if this is not set.
export PYTHON
BIN := $(VENV)/bin
# Tests run in one process more than there are cores: some wait, for servers and for time to pass.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

.PHONY: demo test lint types format bench fuzz fuzz-guided build clean help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.user ## set up, then diagnose a simulated fleet
	@scripts/system-parts demo
	@$(BIN)/gpuwhy demo $(DEMO)

test: $(VENV)/.dev ## set up, then lint, check types and run all tests (CI runs this)
	@scripts/system-parts test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/gpuwhy rules lint
	$(BIN)/gpuwhy kb lint
	$(BIN)/gpuwhy rules test
	$(BIN)/pytest -n $(JOBS) --dist loadgroup $(PYTEST)

lint: $(VENV)/.dev ## lint only
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.dev ## check types only
	$(BIN)/mypy

format: $(VENV)/.dev ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: $(VENV)/.dev ## read a million mutated samples (FUZZ="--seconds 60" for less)
	$(BIN)/python -m tests.fuzz $(FUZZ)

fuzz-guided: $(VENV)/.dev ## the same, guided by coverage (atheris; Python 3.11 or 3.12)
	$(BIN)/python -m pip install -q atheris
	$(BIN)/python -m tests.fuzz.coverage_guided -max_total_time=600 $(FUZZ)

bench: $(VENV)/.dev ## measure speed as ratios in one run
	@scripts/system-parts test
	$(BIN)/python -m benchmarks

build: $(VENV)/.dev ## build the wheel into dist/
	$(BIN)/python -m build --wheel

clean: ## remove what was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis engine/catalogue/_index

$(VENV)/bin/python:
	@scripts/system-parts build
	python=$$(scripts/find-python) && "$$python" -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip

# durable-rules 2.0.28 calls a function that Python 3.13 removed; built with this define it works.
# A wheel built without it may lie in pip's cache, hence --no-cache-dir.
$(VENV)/.durable: $(VENV)/bin/python
	CPPFLAGS=-DPyEval_CallObject=PyObject_CallObject $(BIN)/python -m pip install -q \
		--no-cache-dir --no-binary durable-rules durable-rules==2.0.28
	@touch $@

$(VENV)/.user: pyproject.toml $(VENV)/.durable
	$(BIN)/python -m pip install -q -e .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.durable
	$(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@ $(VENV)/.user
