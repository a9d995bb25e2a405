# The few words to learn; bare `make` lists them. Everything runs from .venv, which the first word
# that needs it creates (scripts/venv.sh) and which is renewed when the pinned versions change.

SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

VENV_PYTHON := .venv/bin/python

# What a caller may set: make test STAGE=unit ARGS='-k wal' JOBS=1
STAGE ?=
ARGS ?=
JOBS ?=
SEEDS ?=
INPUTS ?= 1000000
ONLY ?=
export PYTHON ?=

.PHONY: help run test check format sim fuzz conformance bench golden proto system clean venv

help:
	@echo 'make WORD, where WORD is one of'
	@awk -f scripts/words.awk $(firstword $(MAKEFILE_LIST))

##@ Every day
test: venv  ## every check and test, in stages with their times; STAGE=unit for one, ARGS='-k wal' for pytest
	@$(VENV_PYTHON) scripts/stages.py $(if $(JOBS),--jobs $(JOBS)) $(STAGE) $(if $(ARGS),-- $(ARGS))

check: venv  ## only the linters: ruff, mypy --strict and the import contracts
	@$(VENV_PYTHON) scripts/stages.py check

format: venv  ## put the code into ruff's shape, fixing what it can fix safely
	@$(VENV_PYTHON) -m ruff check --fix --quiet . ; $(VENV_PYTHON) -m ruff format .

run:  ## a local cluster; it starts with the cluster work and is not there yet
	@echo 'There is no node to run yet: the heart (batch, log, Raft, machine) is built and tested,' >&2
	@echo 'the networked node comes next. `make sim` runs whole clusters, simulated, meanwhile.' >&2
	@exit 1

##@ Try to break it
sim: venv  ## whole simulated clusters under faults, one per seed; SEEDS=10000 for a long night
	@$(VENV_PYTHON) -m angarium.testing.sim $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

fuzz: venv  ## hostile bytes for the batch decoder; INPUTS=1000000
	@$(VENV_PYTHON) -m tests.fuzz.batch --inputs $(INPUTS)

conformance: venv  ## replay another Raft library's own scripts; ANGARIUM_RAFT_CONFORMANCE=DIR says where they are
	@$(VENV_PYTHON) -m pytest tests/conformance $(ARGS)

##@ Measure it
bench: venv  ## the benchmarks, each beside its baseline; ONLY=batch for one
	@$(VENV_PYTHON) scripts/benchmarks.py $(ONLY)

##@ Keep it
golden: venv  ## write the golden files of a new format version; those of older ones are never touched
	@$(VENV_PYTHON) -m tests.golden.write

proto: venv  ## generate src/angarium/proto from the sources in proto/
	@$(VENV_PYTHON) scripts/proto.py

system:  ## install the system programs the tests use, with apt (as root or through sudo)
	@sh scripts/system.sh

clean:  ## remove .venv, caches and logs; a local cluster's data stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .angarium/test build dist
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

venv:
	@sh scripts/venv.sh
