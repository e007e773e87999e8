# Targets for developers. Each target installs what it needs and asks for no input. A second run
# installs nothing if the requirement files have not changed.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export WATTWIRE_CACHE ?= $(HOME)/.cache/wattwire

# The stamp's name contains a hash of the requirement files, so switching between commits
# reinstalls packages only if these files differ from the last installation.
PINS := requirements.txt requirements-dev.txt pyproject.toml
HASH := $(shell cat $(PINS) | sha256sum | cut -c1-16)
STAMP := $(VENV)/installed-$(HASH)
CARGO := cargo
TESTS := $(BIN)/python tools/run_tests.py
CAMPAIGN := campaigns/first-look-$(shell date +%Y-%m-%dT%H-%M-%S)

.PHONY: constants help setup agent check quick test test-full test-all test-hostile test-machine test-setup lint demo clean requirements packages-%

help:
	@echo "make setup         create .venv with pinned packages, build the agent and link emulator"
	@echo "make demo          run a small study and write its report (a few minutes)"
	@echo "make check         run lint and check the repository's rules"
	@echo "make quick         run the tests that need Python alone (about a minute)"
	@echo "make test          run these, the page, agent, runs, hosts, and a cell per kind (ten minutes)"
	@echo "make test-full     run these, and the tests of all middleware and languages (half an hour)"
	@echo "make test-all      run the tests with every cell and every pair (hours, gigabytes of disk)"
	@echo "make test-hostile  kill processes at random times, and run mutated studies and hostile nodes"
	@echo "make test-machine  boot a kernel in qemu and test energy, links, Wi-Fi and clocks inside (twenty minutes)"
	@echo "make lint          check formats, lints and types"
	@echo "make constants     regenerate the kits' constants from contract/schemas"
	@echo "make requirements  update the pinned requirement files"
	@echo "make clean         remove build products from this folder (keeps campaigns)"

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
	    $(CARGO) build --quiet --release --locked --workspace; \
	    static=$$(uname -m)-unknown-linux-musl; \
	    if rustup target list --installed 2>/dev/null | grep -qx "$$static"; then \
	        $(CARGO) build --quiet --release --locked -p wattwire-agent --target "$$static"; \
	        touch "target/$$static/release/wattwire-agent"; \
	    fi; \
	else \
	    echo "agent: not built, because cargo is not installed; runs need the agent (see docs/requirements.md)" >&2; \
	fi

setup: packages-demo
	@$(MAKE) -s --no-print-directory $(STAMP)
	@$(MAKE) -s --no-print-directory agent

demo: setup
	@# Exit code 4 means that no run is valid. The page gives the reason, so write it anyway.
	@$(BIN)/wattwire run first-look --campaign $(CAMPAIGN) --no-report || [ $$? -eq 4 ]
	@$(BIN)/wattwire report $(CAMPAIGN)

# Installs the requirements of the tests and prints the time of each part. conftest.py times the
# builds of cells.
test-setup:
	@begun=$$(date +%s); \
	$(MAKE) -s --no-print-directory packages-test $(STAMP); \
	packages=$$(date +%s); \
	$(MAKE) -s --no-print-directory agent; \
	echo "packages: $$((packages - begun)) s; agent: $$(($$(date +%s) - packages)) s"

# tests/tiers.toml has the tier of each test. A tier includes the tiers before it.
quick: packages-quick
	@$(MAKE) -s --no-print-directory $(STAMP)
	@$(TESTS) --tier quick

test: test-setup
	@$(TESTS) --tier test

# `make test-full AFTER=test` omits the tests of `make test`.
test-full: packages-test-full test-setup
	@$(TESTS) --tier full --after "$(AFTER)"

test-all: packages-test-all packages-test-full test-setup
	@WATTWIRE_HEAVY=1 $(TESTS) --tier all

test-hostile: packages-test-all packages-test-full test-setup
	@$(BIN)/python -m tests.hostile

test-machine: packages-test-machine test-setup
	@$(TESTS) --tier all tests/machine

lint: packages-lint
	@$(MAKE) -s --no-print-directory $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@if command -v $(CARGO) >/dev/null; then \
	    $(CARGO) fmt --all -- --check; \
	    $(CARGO) clippy --quiet --release --locked --workspace --all-targets -- -D warnings; \
	    git ls-files 'bench/*.rs' 'languages/*.rs' 'middleware/*.rs' | xargs -r rustfmt --check --edition 2021; \
	    $(BIN)/python tools/rust_cells.py; \
	else \
	    echo "lint: Rust skipped: cargo is not installed" >&2; \
	fi
	@if command -v clang-format >/dev/null; then \
	    git ls-files '*.c' '*.cc' '*.cpp' '*.cu' '*.h' '*.hpp' | xargs -r clang-format --dry-run -Werror; \
	else \
	    echo "lint: C++ skipped: clang-format is not installed" >&2; \
	fi
	@$(BIN)/python tools/kit_lints.py

check: lint
	@$(TESTS) -q tests/tidy

# Needs pip-tools on PATH. Run it with the Python version for which to pin packages.
requirements:
	@for name in requirements requirements-dev; do \
	    CUSTOM_COMPILE_COMMAND="make requirements" pip-compile --quiet --generate-hashes \
	        --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --strip-extras \
	        --allow-unsafe --output-file=$$name.txt $$name.in; \
	done

# Run this target after a change to contract/schemas or to a language's template.
constants: $(STAMP)
	@$(BIN)/python tools/generate_constants.py

clean:
	@rm -rf $(VENV) build target *.egg-info .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
