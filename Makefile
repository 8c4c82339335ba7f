# Every target sets up what it needs: python3 with venv, and make, are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
EXAMPLE := examples/01-first-scenario/scenario.yaml

.PHONY: demo test test-all marks check bench dist lock format clean help kubectl helm kubernetes interop chromium conformance tsc

help: ## Show the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.core ## Play the first example.
	$(BIN)/kubescene run $(EXAMPLE) --out out/first-scenario

test: $(VENV)/.dev ## Run the quick tests: no programs, servers or pools; says what it left out.
	$(BIN)/python -m pytest --quick -n 2

test-all: $(VENV)/.dev kubectl helm kubernetes interop chromium conformance tsc ## Run all tests.
	$(BIN)/python -m pytest --strict-marks -n 3 --dist loadgroup # two cores: a test of a program mostly waits

marks: $(VENV)/.dev kubectl helm kubernetes interop chromium tsc ## Find out anew which tests are quick (tests/marks.txt).
	$(BIN)/python -m pytest --record-marks -q -W ignore -p no:unraisableexception -p no:threadexception

kubectl: # The conformance tests need one; where there is none, Go can build it.
	@command -v kubectl >/dev/null || test -x .tools/bin/kubectl || scripts/install-kubectl \
	  || echo "No kubectl and no way to build one: its conformance tests will be skipped."

helm: # So do those of charts.
	@command -v helm >/dev/null || test -x .tools/bin/helm || scripts/install-helm \
	  || echo "No helm and no way to build one: its conformance tests will be skipped."

kubernetes: # Programs from outside are tested with the real ones, built once and kept.
	@scripts/build-kubernetes || echo "The tests of programs that are not here will be skipped."

interop: # A host and plugins in Go, for the tests of autoscaler processes.
	@scripts/build-plugin-interop $(BIN)/python || echo "The tests with plugins in Go will be skipped."

conformance: # Cases that others publish; they are not in the repository.
	@scripts/fetch-conformance || echo "The tests of published cases that are not here will be skipped."

chromium: # The report is tested in a real browser; where there is none, apt may have one.
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null || scripts/install-chromium \
	  || echo "No browser and no way to install one: the tests of the report in it will be skipped."

tsc: # What the modules of the pages say of their types is checked where there is npm.
	@test -x .tools/typescript/node_modules/.bin/tsc || scripts/install-tsc \
	  || echo "No npm, or it reaches no registry: types of the pages are not checked."

check: $(VENV)/.dev ## Lint, types, layers, spelling.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs examples bench tools README.md CONTRIBUTING.md

bench: $(VENV)/.dev ## Measure; prints figures beside their floors.
	$(BIN)/python bench/run.py

dist: $(VENV)/.core ## Build wheel and sdist into dist/.
	$(BIN)/python -m hatchling build

format: $(VENV)/.dev ## Rewrite the sources in house format.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(VENV)/.dev ## Pin the newest dependencies, hashed, without index addresses.
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade --no-strip-extras --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --group build pyproject.toml --output-file requirements/core.txt
	$(BIN)/uv pip compile --quiet --upgrade --no-strip-extras --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --group build --group dev --group clients --group extras --group notebooks \
	  pyproject.toml --output-file requirements/dev.txt

clean: ## Forget everything that was installed or made.
	rm -rf $(VENV) .tools out build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Kubescene needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: requirements/core.txt pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --require-hashes -r requirements/core.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.core
