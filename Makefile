# The verbs of this repository. Every one runs without questions and does its installing itself;
# a second run installs nothing, as long as the requirement files stay the same.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export WATTWIRE_CACHE ?= $(HOME)/.cache/wattwire

# One stamp for each content of the requirement files, so that going back and forth between
# commits reinstalls only where something differs from what was installed last.
PINS := requirements.txt requirements-dev.txt pyproject.toml
HASH := $(shell cat $(PINS) | sha256sum | cut -c1-16)
STAMP := $(VENV)/installed-$(HASH)
CARGO := cargo
# A sourced ROS has pytest plugins on PYTHONPATH that this pytest cannot load: name ours instead.
PYTEST := PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -p xdist.plugin -p pytest_timeout \
    -p _hypothesis_pytestplugin
CAMPAIGN := campaigns/first-look-$(shell date +%Y-%m-%dT%H-%M-%S)

.PHONY: constants help setup agent check test test-all test-setup lint demo clean requirements packages-%

help:
	@echo "make setup         .venv with pinned packages, and the agent"
	@echo "make demo          measure something, and write a report about it (a few minutes)"
	@echo "make check         lint and the repository's rules"
	@echo "make test          the tests: of each middleware a cell and a pair of languages"
	@echo "make test-all      the tests, with every cell and every pair (hours, and gigabytes)"
	@echo "make lint          formats, lints and types"
	@echo "make constants     write the kits' constants anew from contract/schemas"
	@echo "make requirements  pin the requirement files anew"
	@echo "make clean         remove what was built in this folder (campaigns stay)"

packages-%:
	@$(PYTHON) tools/packages.py $*

$(STAMP): $(PINS)
	@python=$(BIN)/python; if [ ! -x $$python ]; then python=$(PYTHON); fi; \
	versions=$$($$python tools/requirements.py python); \
	if [ ! -x $(BIN)/python ]; then $(PYTHON) -m venv $(VENV); fi; \
	rm -f $(VENV)/installed-*; \
	if [ "$$versions" = unpinned ]; then \
	    echo "installing packages into $(VENV); pip chooses their versions, because the pinned" \
	        "ones need a newer Python"; \
	    $(BIN)/python -m pip install -q --upgrade -r requirements.in $$(grep -v '^[-#]' requirements-dev.in); \
	else \
	    echo "installing pinned packages into $(VENV)"; \
	    $(BIN)/python -m pip install -q --require-hashes -r requirements.txt \
	        -r requirements-dev.txt; \
	fi
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

agent:
	@if command -v $(CARGO) >/dev/null; then \
	    $(PYTHON) tools/requirements.py cargo; \
	    $(CARGO) build --quiet --release --locked --manifest-path agent/Cargo.toml; \
	else \
	    echo "agent: not built: cargo is not installed; runs need it (see README.md)" >&2; \
	fi

setup: packages-demo
	@$(MAKE) -s --no-print-directory $(STAMP)
	@$(MAKE) -s --no-print-directory agent

demo: setup
	@# Exit code 1 says that no run can be used (a busy machine): the page tells why.
	@$(BIN)/wattwire run first-look --campaign $(CAMPAIGN) --no-report || [ $$? -eq 1 ]
	@$(BIN)/wattwire report $(CAMPAIGN)

# What the tests need, with the time that each part takes; builds of cells are timed by conftest.py.
test-setup:
	@begun=$$(date +%s); \
	$(MAKE) -s --no-print-directory packages-test packages-demo $(STAMP); \
	packages=$$(date +%s); \
	$(MAKE) -s --no-print-directory agent; \
	echo "packages: $$((packages - begun)) s; agent: $$(($$(date +%s) - packages)) s"

test: test-setup
	@# Two at a time and no more: checks of a node's pace would find a crowd instead.
	@$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder

test-all: test-setup
	@WATTWIRE_HEAVY=1 $(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder -m ""

lint: packages-lint
	@$(MAKE) -s --no-print-directory $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@if command -v $(CARGO) >/dev/null; then \
	    $(CARGO) fmt --manifest-path agent/Cargo.toml -- --check; \
	    $(CARGO) clippy --quiet --release --locked --manifest-path agent/Cargo.toml \
	        --all-targets -- -D warnings; \
	    git ls-files 'bench/*.rs' 'languages/*.rs' 'middleware/*.rs' | xargs -r rustfmt --check --edition 2021; \
	    $(BIN)/python tools/rust_cells.py; \
	else \
	    echo "lint: Rust skipped: cargo is not installed" >&2; \
	fi
	@if command -v clang-format >/dev/null; then \
	    git ls-files '*.c' '*.cc' '*.cpp' '*.h' '*.hpp' | xargs -r clang-format --dry-run -Werror; \
	else \
	    echo "lint: C++ skipped: clang-format is not installed" >&2; \
	fi
	@$(BIN)/python tools/kit_lints.py

check: lint
	@$(PYTEST) -q tests/tidy

# Needs pip-tools on PATH. Run it with the Python whose pins the files shall hold.
requirements:
	@for name in requirements requirements-dev; do \
	    CUSTOM_COMPILE_COMMAND="make requirements" pip-compile --quiet --generate-hashes \
	        --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --strip-extras \
	        --allow-unsafe --output-file=$$name.txt $$name.in; \
	done

# After a change in contract/schemas or in a language's template.
constants: $(STAMP)
	@$(BIN)/python tools/generate_constants.py

clean:
	@rm -rf $(VENV) build target *.egg-info .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
