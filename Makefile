# `make run` and `make test` need nothing but Python 3.11 or newer and make. `make system` needs root on Debian.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.ONESHELL:
.PHONY: run test check baselines lock bench drills system clean

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --no-input
AROUND := $(BIN)/python -m labsite.embedded.around --
ARGS ?=
# Two processes are worth their start on the whole suite only. tests/parallel.py says which tests one of them has alone.
PARALLEL ?= $(if $(ARGS),,-n 2)

run: .venv/installed
	@exec $(BIN)/python manage.py up $(ARGS)

# What the example bundles run on; the tests of them run on the same lock.
LABSITE_POOL_PYTHON ?= $(CURDIR)/.venv-pool/bin/python
export LABSITE_POOL_PYTHON

test: .venv/installed-dev .venv-pool/installed .venv-ray/installed .venv-s3/installed .venv-croissant/installed
	@exec $(AROUND) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

check: .venv/installed-dev
	@echo "ruff";           $(BIN)/ruff check --no-cache .
	echo "ruff format";    $(BIN)/ruff format --no-cache --check .
	echo "mypy";           $(BIN)/mypy labsite workspaces runs tests
	echo "lint-imports";   $(BIN)/lint-imports --no-cache
	echo "djade";          find templates -name '*.html' | sort | xargs $(BIN)/djade --check --target-version 5.2
	echo "djlint";         $(BIN)/djlint --lint --profile django --quiet templates
	echo "makemigrations"; $(AROUND) $(BIN)/python manage.py makemigrations --check --dry-run

# Goes through all and fails where one missed its target, or one by its name: make bench BENCH=ledger_operations ARGS=10000
BENCH ?= *
bench: .venv/installed-dev .venv-pool/installed
	@code=0
	for script in tests/bench/$(BENCH).py; do echo "== $$script"; PYTHONPATH=. $(AROUND) $(BIN)/python "$$script" $(ARGS) || code=1; done
	exit $$code

# Writes the checked-in tables anew (role_routes.txt, query_counts.json, docs/openapi.json, docs/export.md); look at the difference before committing it.
baselines: .venv/installed-dev
	@LABSITE_WRITE_BASELINES=1 exec $(AROUND) $(BIN)/python -m pytest -q tests/rules/test_routes.py tests/rules/test_gets.py tests/rules/test_openapi.py tests/rules/test_export_document.py

# Goes through all as they are by default, or one by its name, N times where it counts something: make drills DRILL=kills N=60 ARGS=--ssh
DRILL ?= *
N ?=
drills: .venv/installed-dev .venv-pool/installed .venv-ray/installed
	@code=0
	for script in tests/drills/$(DRILL).py; do echo "== $$script"; PYTHONPATH=. $(BIN)/python "$$script" $(if $(filter-out *,$(DRILL)),$(N)) $(ARGS) || code=1; done
	exit $$code

# The locks name neither a registry's host nor a path, so that they are the same wherever they are made.
lock:
	@test -d .venv-lock || $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip --quiet install uv
	for name in requirements requirements-dev requirements-pool requirements-ray requirements-s3 requirements-croissant; do
	  .venv-lock/bin/uv pip compile --quiet --generate-hashes --universal --no-emit-index-url --no-header \
	    --python-version 3.11 $(ARGS) "$$name.in" -o "$$name.lock"
	done

system:
	@exec bash .ci/system

clean:
	rm -rf .venv .venv-lock .venv-pool .venv-ray .venv-s3 .venv-croissant .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.venv/bin/python:
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "labsite: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv \
	  || { rm -rf .venv; echo "labsite: $(PYTHON) cannot make environments; on Debian: apt-get install python3-venv" >&2; exit 1; }

.venv/installed: requirements.lock | .venv/bin/python
	@echo "installing what labsite runs on (half a minute, once)"
	$(PIP) install --require-hashes -r requirements.lock
	touch $@

.venv-pool/installed: requirements-pool.lock | .venv/bin/python
	@echo "installing what the example runs need (half a minute, once)"
	test -x .venv-pool/bin/python || "$(PYTHON)" -m venv .venv-pool
	.venv-pool/bin/python -m pip --disable-pip-version-check --quiet --no-input install --require-hashes -r requirements-pool.lock
	touch $@

.venv-ray/installed: requirements-ray.lock | .venv/bin/python
	@echo "installing the Ray of the tests (half a minute, once)"
	test -x .venv-ray/bin/python || "$(PYTHON)" -m venv .venv-ray
	.venv-ray/bin/python -m pip --disable-pip-version-check --quiet --no-input install --require-hashes -r requirements-ray.lock
	touch $@

.venv-s3/installed .venv-croissant/installed: .venv-%/installed: requirements-%.lock | .venv/bin/python
	@echo "installing what tests of $* need (half a minute, once)"
	test -x .venv-$*/bin/python || "$(PYTHON)" -m venv .venv-$*
	.venv-$*/bin/python -m pip --disable-pip-version-check --quiet --no-input install --require-hashes -r requirements-$*.lock
	touch $@

.venv/installed-dev: requirements-dev.lock | .venv/bin/python
	@echo "installing what tests and checks need (a minute, once)"
	$(PIP) install --require-hashes -r requirements-dev.lock
	touch $@ .venv/installed
