# make setup   builds .venv, installs Textor and fetches the models in the box
# make run     sets up and starts the page
# make test    sets up and runs every check and test
# Also: lint, bench, fuzz, clean. PYTHON names the interpreter (3.11 or newer).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: setup run test lint bench fuzz clean box
.DEFAULT_GOAL := setup

setup: $(VENV)/.installed box

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Textor needs Python 3.11 or newer; name one with make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/pip
	@echo "Installing Textor into $(VENV) (a minute or two)."
	$(PIP) install --editable .
	@touch $@

$(VENV)/.tested-with: pyproject.toml | $(BIN)/pip
	@echo "Installing Textor and what its tests need into $(VENV) (a minute or two)."
	$(PIP) install --editable '.[dev]'
	@touch $(VENV)/.installed $@

# Looks first and fetches only what is missing; without a network Textor still runs other models.
box: $(VENV)/.installed
	@$(BIN)/python -m textor.models.box_fetch >/dev/null || echo "Going on without the model in the box."
	@$(BIN)/python -m textor.memory.embedder_fetch >/dev/null || echo "Going on without the embedding model."

run: setup
	@$(BIN)/textor serve

lint: $(VENV)/.tested-with
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_kernel.py

# pytest stands last, so that its closing line does.
test: $(VENV)/.tested-with box lint
	$(BIN)/pytest

bench: $(VENV)/.tested-with box
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file; done

fuzz: $(VENV)/.tested-with
	$(BIN)/pytest -m hypothesis --hypothesis-profile=fuzz --timeout=0

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
