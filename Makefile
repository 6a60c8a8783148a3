# Everything a newcomer needs; `make help` lists it. Only python3 and make have to be there.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup servers demo demo-check test check fix lint types imports bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make the virtual environment and install everything into it

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11")'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "python3 has no venv or pip here; install them with: apt install python3-venv python3-pip (or your system's packages)"; exit 1; }
	@echo "setting up $(VENV) (about a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@if command -v uv >/dev/null 2>&1; then VIRTUAL_ENV=$(VENV) uv pip install -q -e '.[dev]'; \
	 else $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]' 2>&1 | grep -v '^WARNING: Location' || true; fi
	@$(BIN)/python -c 'import ingest.cli, pytest' || { echo "installing failed; run: $(BIN)/python -m pip install -e '.[dev]'"; exit 1; }
	@touch $(STAMP)

servers: ## install the real servers that tests/sources harvests (Django REST framework; npm's json-server) into .servers/
	@test -x .servers/drf/bin/python || $(PYTHON) -m venv .servers/drf
	@.servers/drf/bin/python -m pip install -q --disable-pip-version-check 'django>=5,<6' 'djangorestframework>=3.15' 2>&1 | grep -v '^WARNING: Location' || true
	@if command -v npm >/dev/null 2>&1; then npm install --silent --no-fund --no-audit --prefix .servers json-server@0.17; \
	 else echo "npm is not installed: tests of json-server will be skipped"; fi

demo: $(STAMP) ## harvest the bundled simulator on an embedded PostgreSQL, with live progress; Ctrl-C stops it all
	@$(BIN)/ingest demo

demo-check: $(STAMP) ## the same headless; exits 0 if the data equals the simulator's truth, else 1
	@$(BIN)/ingest demo --check

check: $(STAMP) lint types imports ## what to run before a commit: ruff, mypy, import-linter, the fast tests
	@$(BIN)/pytest -q -n 2 -m 'not slow'

test: $(STAMP) lint types imports ## everything: checks and all tests, on an embedded PostgreSQL
	@echo "running all tests (INGEST_TEST_DATABASE_URL=... runs them on your own server)"
	@$(BIN)/pytest -q -n 2

lint: $(STAMP)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check -q .

types: $(STAMP)
	@$(BIN)/mypy

imports: $(STAMP)
	@$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache

fix: $(STAMP) ## format and fix what ruff can
	@$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format -q .

bench: $(STAMP) ## measure ours beside the floor and dlt; see benchmarks/README.md
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[bench]'
	@$(BIN)/python -m benchmarks

clean: ## stop the demo's server and remove what was made
	@test ! -x $(BIN)/ingest || INGEST_HOME=.demo $(BIN)/ingest db stop >/dev/null 2>&1 || true
	@rm -rf $(VENV) .servers .demo .pytest_cache .mypy_cache .ruff_cache
