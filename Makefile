# The developer's words. Each of them sets up what it needs; `make help` lists them.

PYTHON ?= python3
ARGS ?=
# Where the pictures of the page are kept that its tests draw; docs has those that are shown.
PICTURES ?= pictures

# Extras of pyproject.toml that a developer gets, separated by commas.
EXTRAS := editor,eval,gym,mesh,policy,record,ros2,scale,video
# What MuJoCo needs to draw without a screen.
SYSTEM_PACKAGES := libegl1 libegl-mesa0 libgl1-mesa-dri libopengl0 libosmesa6
# A second implementation of DDS, for the tests to talk to, and a browser (tests/browser.py).
TEST_PACKAGES := g++ libfastrtps-dev chromium

# Versions of MuJoCo that the original's clients pin; the developer's environment has the newest.
MUJOCO_VERSIONS := 3.8.1 3.10.0

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SYSTEM_READY := $(VENV)/.system-ready
TESTS_READY := $(VENV)/.tests-ready
ENVIRONMENT := $(READY) $(SYSTEM_READY)
# Files of tests run side by side, those that take longest first, one more than there are cores as some wait; in one process: make test ARGS=-n0
SIDE_BY_SIDE := -n $(shell expr $$(nproc) + 1) --dist loadfile --no-loadscope-reorder
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo serve test test-fast test-page test-ray test-versions campaign check bench bench-test deploy-test format clean

help: ## list the words
	@echo "make WORD, where WORD is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1	\2/p' $(MAKEFILE_LIST) | expand -t 14
	@echo 'serve and the words for tests and benchmarks pass ARGS on: make test ARGS="-k codec"'

setup: $(ENVIRONMENT) ## create .venv with everything in it
	@echo "Ready. Next: make demo"

demo: $(ENVIRONMENT) ## a simulation to look at, start to end
	@$(BIN)/urlab demo

serve: $(ENVIRONMENT) ## run the server (ARGS: a level, a model, options)
	@$(BIN)/urlab serve $(ARGS)

test: $(ENVIRONMENT) $(TESTS_READY) ## run the tests, on all cores (ARGS: options of pytest)
	@$(BIN)/pytest $(SIDE_BY_SIDE) $(ARGS)

test-fast: $(ENVIRONMENT) ## run the tests that start no processes, for every change (ARGS: options of pytest)
	@$(BIN)/pytest $(SIDE_BY_SIDE) --fast $(ARGS)

test-page: $(ENVIRONMENT) $(TESTS_READY) ## do on the editor's page what a person does, in Chromium, and keep pictures (PICTURES: where; ARGS: options of pytest)
	@PICTURES=$(PICTURES) $(BIN)/pytest -m page tests/urlab/editor $(ARGS)

test-ray: $(ENVIRONMENT) ## rollouts and evaluation on a Ray cluster of this machine (ARGS: options of pytest)
	@$(BIN)/pytest -m ray tests/scale $(ARGS)

test-versions: ## the compliance tests on older versions of MuJoCo, each in an environment of its own (ARGS: options of pytest)
	@for version in $(MUJOCO_VERSIONS); do \
		scripts/test-on-mujoco $(PYTHON) $$version .venvs/mujoco-$$version $(ARGS) || exit 1; \
	done

campaign: $(ENVIRONMENT) ## attack everything that listens or reads files, three hours (ARGS: fronts, --minutes, --seed)
	@$(BIN)/python -m tests.campaign $(ARGS)

check: $(ENVIRONMENT) ## style, types and arrows between rooms; stops at the first failure
	@echo "== lint (ruff check)"
	@$(BIN)/ruff check --quiet
	@echo "== format (ruff format; mend with: make format)"
	@$(BIN)/ruff format --check --quiet
	@echo "== types (mypy)"
	@$(BIN)/mypy --no-error-summary
	@echo "== arrows between rooms (import-linter)"
	@$(BIN)/lint-imports --no-logo

bench: $(ENVIRONMENT) ## measure against floors (ARGS: a benchmark and its options; all of them)
	@$(BIN)/python -m benchmarks $(ARGS)

bench-test: $(ENVIRONMENT) ## run every benchmark in a small way (ARGS: options of pytest)
	@$(BIN)/python -m pytest benchmarks/tests $(ARGS)

deploy-test: $(ENVIRONMENT) ## replay the files of deploy/ in a chroot (needs root; minutes)
	@scripts/system-packages debootstrap
	@$(BIN)/python scripts/replay-deploy $(ARGS)

format: $(ENVIRONMENT) ## put the source into shape
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format

clean: ## remove what the other words made, .venv included; bench-results stays
	@rm -rf $(VENV) .venvs build dist demo-output MUJOCO_LOG.TXT
	@rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks $(wildcard examples) -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@scripts/create-venv $(PYTHON) $(VENV)
	@echo "Installing Python packages into $(VENV) (a minute or two the first time)"
	@$(PIP_INSTALL) --upgrade 'pip>=25.1'
	@$(PIP_INSTALL) --editable '.[$(EXTRAS)]' --group dev
	@touch $@

# No stamp while something is missing, so that the reminder comes back.
$(SYSTEM_READY): | $(READY)
	@if scripts/system-packages $(SYSTEM_PACKAGES); then touch $@; \
	else echo "Going on without them: everything but cameras works."; fi

$(TESTS_READY): | $(READY)
	@if scripts/system-packages $(TEST_PACKAGES); then touch $@; \
	else echo "Going on without them: the tests that need another DDS or a browser are skipped."; fi
