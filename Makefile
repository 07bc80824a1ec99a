# Two commands: `make run` and `make test`. Both set up whatever is missing first.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup run test check docs bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt scripts/ensure_java.sh
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or later is needed: set PYTHON=…"; exit 1; }
	@echo "Installing into $(VENV): about a minute."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	sh scripts/ensure_java.sh
	@touch $(STAMP)

run: setup
	$(BIN)/interpunct demo

test: setup
	sh scripts/ensure_chromium.sh
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet

docs: setup
	$(BIN)/python -m interpunct.flow.reference > docs/operators.md
	$(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

bench: setup
	POLARS_MAX_THREADS=1 $(BIN)/interpunct lab bench

clean:
	rm -rf $(VENV) build out site .mypy_cache .ruff_cache .pytest_cache .hypothesis
