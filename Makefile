# demo   the whole story on a sample database          (installs what it needs into .venv)
# test   lint, types, and every test                   (and the tools the tests look through)
# fuzz   the property-based tests, each time with other examples
# lint   ruff and mypy alone
# bench  measure, and write docs/benchmarks.md
# docs   run every command of the README again, write docs/types.md, take the pictures of docs/tour.md
# clean  remove what the above made

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# The command that shows a tool is there, and the distribution's package that brings it.
TOOLS := xmllint:libxml2-utils xmlsec1:xmlsec1 unzip:unzip sqlite3:sqlite3 pg_ctlcluster:postgresql /usr/sbin/sshd:openssh-server mdb-ver:mdbtools \
  /usr/sbin/firebird:firebird3.0-server mariadbd:mariadb-server chromium:chromium curl:curl wrk:wrk less:less script:bsdutils

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz lint bench docs clean tools

help:
	@sed -n 's/^# \([a-z]* .*\)/  make \1/p' Makefile

demo: $(VENV)/installed
	$(BIN)/muniment demo

test: tools lint
	$(BIN)/python -m pytest -q -n auto

fuzz: tools $(VENV)/installed-dev
	MUNIMENT_FUZZ=1 $(BIN)/python -m pytest -q -n auto $$(grep -rl hypothesis --include='test_*.py' tests)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	@$(BIN)/python -m compileall -q src
	$(BIN)/python bench/run.py

docs: $(VENV)/installed-dev
	$(BIN)/python tests/cli/transcripts.py README.md
	$(BIN)/python -m muniment.siard.rules.conformance > docs/conformance.md
	$(BIN)/python tests/databases/type_tables.py docs/types.md
	MUNIMENT_SHOTS=docs/tour $(BIN)/python -m pytest -q -n 0 tests/web/test_browser.py tests/web/test_store_browser.py \
	  -k "clicks_through or static_site or written_in_the_browser"

clean:
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: installing is repeated only when pyproject.toml changed.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Muniment needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Python cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/installed

tools:
	@missing=; \
	for tool in $(TOOLS); do \
	  command -v "$${tool%%:*}" >/dev/null || missing="$$missing $${tool##*:}"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	if ! command -v apt-get >/dev/null; then \
	  echo "The tests need these tools; please install:$$missing"; exit 1; \
	fi; \
	if [ "$$(id -u)" = 0 ]; then as_root=; \
	elif command -v sudo >/dev/null; then as_root=sudo; \
	else echo "The tests need these packages; as root: apt-get install$$missing"; exit 1; fi; \
	echo "installing$$missing"; \
	$$as_root apt-get update -qq && \
	  $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $$missing >/dev/null
