# Every target works on a fresh machine: it makes .venv and installs what it needs. A second call is instant.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: demo docs test test-all check format clean install wheel
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Regard needs Python 3.11 or newer; try: make PYTHON=python3.11 demo"; exit 2; }
	@echo "Creating $(VENV) and installing Regard (about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# torch first and pinned: a looser request may fetch gigabytes of GPU libraries.
$(VENV)/run: pyproject.toml constraints.txt | $(VENV)/pip
	@$(PIP) -c constraints.txt "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	@$(PIP) -c constraints.txt -e .
	@touch $@

$(VENV)/dev: $(VENV)/run
	@$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@

# Argos Translate, which one test gives a package to; what it depends on is large and not needed there.
$(VENV)/argos: | $(VENV)/dev
	@$(PIP) -c constraints.txt --no-deps --target $@ argostranslate minisbd sacremoses || echo "Argos Translate could not be installed: its test will be skipped."

install: $(VENV)/run  ## install Regard into .venv

demo: $(VENV)/run  ## train three small translators and look inside (under 5 minutes)
	@$(BIN)/regard demo --out runs/demo

test: $(VENV)/dev $(VENV)/argos  ## run the tests with coverage
	@rm -f .coverage .coverage.*
	@OMP_NUM_THREADS=1 REGARD_ARGOS=$$(ls -d $(CURDIR)/$(VENV)/argos 2>/dev/null) $(BIN)/python -m pytest -n auto --dist loadfile --cov=regard --cov-report=term --cov-fail-under=97 $(ARGS)

test-all: $(VENV)/dev $(VENV)/argos  ## run all tests, also those that take minutes
	@OMP_NUM_THREADS=1 REGARD_ARGOS=$$(ls -d $(CURDIR)/$(VENV)/argos 2>/dev/null) $(BIN)/python -m pytest -n auto --dist loadfile -m "" $(ARGS)

docs: $(VENV)/dev  ## build the documentation site into build/site, notebooks included
	@OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

wheel: $(VENV)/run  ## build dist/regard-*.whl
	@$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/regard-*.whl

check: $(VENV)/dev  ## lint, format, types and the arrows between the rooms
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/dev  ## put the code into shape
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:  ## remove .venv, caches and the demo's run
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .coverage .coverage.* dist build runs/demo
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
