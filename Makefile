# Every target sets up what it needs in .venv (or .tools) first; a second call finds it there and starts at once.
# Needs Python 3.11 or newer and make. Another Python: make demo PYTHON=/usr/bin/python3.12
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(firstword $(shell command -v python3.11 python3.12 python3.13 python3) python3)
VENV := .venv
BIN := $(VENV)/bin
TOOLS := .tools
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile --no-input

# Unit tests run on every core, at most 8; then, three at a time, files that wait for servers and judge no latency; what does
# has the machine for itself, at the end.
# One after another, to use a debugger or see what is printed: make unit PYTEST="-n 0 -s"
UNIT := -q -n auto --maxprocesses 8 -m "not integration and not e2e"
BESIDE := -q -n 3 --dist loadfile -m "beside"
ALONE := -m "(integration or e2e) and not beside"

RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed

.PHONY: help demo test check lint unit bench stack tools tools-prometheus tools-vllm tools-chromium tools-compose tools-docker clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(RUNTIME) ## Stand-in engine, load, live page and report on this machine (DEMO="--duration 20s" passes options)
	@$(BIN)/cliffwatch demo $(DEMO)

test: unit ## All tests; those whose server is absent are skipped and say which target brings it (see `make tools`)
	@$(BIN)/python -m pytest $(BESIDE) $(PYTEST)
	@$(BIN)/python -m pytest $(ALONE) $(PYTEST)

check: lint unit ## lint and unit: what a commit must pass

lint: $(DEV) ## Format, lint, types, import contracts
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

unit: $(DEV) ## Unit tests
	@$(BIN)/python -m pytest $(UNIT) $(PYTEST)

bench: $(DEV) ## Run every benchmark once and print its figures
	@scripts/bench $(BIN)/python

stack: $(DEV) tools-prometheus tools-compose ## Check docker-compose.yml, the Prometheus and Alertmanager files, rules and boards
	@scripts/check_stack $(TOOLS) $(BIN)

tools: tools-prometheus tools-vllm tools-chromium tools-compose tools-docker ## Fetch every server and tool that tests use

tools-prometheus: $(TOOLS)/prometheus/.ready $(TOOLS)/prometheus-2.42/.ready ## Prometheus 3.5 (and 2.42, the oldest that rules are for), promtool, Alertmanager
tools-vllm: $(TOOLS)/vllm/.ready ## vLLM for CPU (2.5 GB) and a tiny model into .tools/vllm
tools-compose: $(TOOLS)/compose/.ready ## Docker Compose v5 into .tools/compose (no daemon needed for `make stack`)
tools-docker: $(TOOLS)/docker/.ready ## Docker Engine, a base image, wheels: to test `docker compose up` without a registry (needs root)
tools-chromium: ## Chromium from the distribution's packages (needs root)
	@scripts/get_chromium

$(TOOLS)/prometheus/.ready: scripts/get_prometheus
	@scripts/get_prometheus $(@D) && touch $@

$(TOOLS)/prometheus-2.42/.ready: scripts/get_prometheus | $(TOOLS)/prometheus/.ready
	@scripts/get_prometheus $(@D) bookworm && touch $@

$(TOOLS)/vllm/.ready: scripts/get_vllm tests/servers/vllm.lock tests/servers/tiny_model.py | $(DEV)
	@scripts/get_vllm $(@D) "$(PYTHON)" $(BIN)/python && touch $@

$(TOOLS)/compose/.ready: scripts/get_compose | $(VENV)/.made
	@scripts/get_compose $(@D) $(BIN)/python && touch $@

$(TOOLS)/docker/.ready: scripts/get_docker requirements.lock | $(DEV)
	@scripts/get_docker $(@D) $(BIN)/python && touch $@

$(VENV)/.made: scripts/make_venv
	@scripts/make_venv "$(PYTHON)" $(VENV) && touch $@

$(RUNTIME): requirements.lock pyproject.toml $(VENV)/.made
	@echo "installing $$(grep -c '==' requirements.lock) packages into $(VENV) (about 25 s from a warm pip cache) ..." >&2
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV): requirements-dev.lock $(RUNTIME)
	@echo "installing $$(grep -c '==' requirements-dev.lock) development packages into $(VENV) ..." >&2
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

clean: ## Remove environments, fetched tools and caches; runs/ stays
	@rm -rf $(VENV) $(TOOLS) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
