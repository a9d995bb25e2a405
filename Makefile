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
PORT_BASE ?=
NODES ?=
PROFILES ?=
SECURE ?=
CHANGES ?=
ONLY ?=
TIMES ?=
HOURS ?=
RATE ?=
RECORDS ?=
FAULTS ?=
SEED ?=
PYSPARK ?= 4.0.*
export PYTHON ?=

.PHONY: help run pipeline test check format sim planted fuzz chaos floods chaos-spark chaos-lake test-spark rotations soak matrix judges keycloak browser kubernetes conformance bench golden proto system clean venv base

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

run: base  ## a local cluster of three nodes with a live table, Ctrl-C stops it; PORT_BASE=7500, NODES=5, PROFILES=hermes for clients of earlier brokers, SECURE=1 with TLS and authentication
	@$(if $(SECURE),sh scripts/venv.sh tls,:)
	@exec .venv/bin/angarium up $(if $(PORT_BASE),--port-base $(PORT_BASE)) $(if $(NODES),--nodes $(NODES)) $(if $(PROFILES),--compat $(PROFILES)) $(if $(SECURE),--secure) --pipeline

pipeline:  ## a topic into a lake table and one SQL answer, on the cluster of `make run`; installs Spark (about 460 MB)
	@sh scripts/venv.sh spark
	@exec .venv/bin/angarium pipeline demo

##@ Try to break it
sim: venv  ## whole simulated clusters under faults, one per seed; SEEDS=10000 for a long night
	@$(VENV_PYTHON) -m angarium.testing.sim $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

planted: venv  ## search for every bug planted to test the simulator, and print a table; ARGS=NAME for one
	@$(VENV_PYTHON) -m tests.simulation.search $(ARGS)

fuzz: venv  ## hostile bytes for the batch decoder; INPUTS=1000000
	@$(VENV_PYTHON) -m tests.fuzz.batch --inputs $(INPUTS)

chaos: venv  ## a cluster of real processes under faults, many times over, and a table; TIMES=20 ONLY=kill,pause
	@$(VENV_PYTHON) -m angarium.testing.cluster.chaos $(if $(TIMES),--times $(TIMES)) $(if $(ONLY),--only $(ONLY))

floods: venv  ## eight connections flood each door with each kind of frame, beside a publisher, and a table; ONLY=websocket TIMES=6 ARGS=--write
	@$(VENV_PYTHON) -m tests.floods $(if $(ONLY),--only $(ONLY)) $(if $(TIMES),--rounds $(TIMES)) $(ARGS)

chaos-spark: venv  ## Spark copies a topic while drivers, executors and brokers are killed; RECORDS=5000000 FAULTS=30 SEED=1
	@$(VENV_PYTHON) -m angarium.testing.spark.chaos $(if $(RECORDS),--records $(RECORDS)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(SEED),--seed $(SEED))

chaos-lake: venv  ## two Spark drivers archive the same topic, one of them suspended: each record once? TIMES=10
	@$(VENV_PYTHON) -m angarium.testing.spark.archives $(if $(TIMES),--times $(TIMES)) $(if $(RECORDS),--records $(RECORDS))

rotations: venv  ## certificates change under load, and no publish fails; CHANGES=1000
	@$(VENV_PYTHON) -m tests.cluster.rotations $(if $(CHANGES),--changes $(CHANGES))

soak: venv  ## steady load on a cluster for HOURS=0.5 at RATE=10000 records per second: does anything grow?
	@$(VENV_PYTHON) -m angarium.testing.cluster.soak $(if $(HOURS),--hours $(HOURS)) $(if $(RATE),--rate $(RATE)) $(ARGS)

matrix: venv  ## every door, method and kind of caller against real nodes, what each may do; writes docs/trust/security.md; NODES=3, ARGS=--planted
	@$(VENV_PYTHON) -m tests.doors.matrix --write $(if $(NODES),--nodes $(NODES)) $(ARGS)

judges: venv  ## public test suites and clients of other languages at the gRPC door, and a table; ONLY=h2spec,interop-go
	@$(VENV_PYTHON) -m tests.judges $(if $(ONLY),--only $(ONLY)) $(ARGS)

keycloak: venv  ## people who log in at a real Keycloak use a node through its doors; fetches it with Maven (180 MB, once)
	@$(VENV_PYTHON) -m tests.keycloak

browser: venv  ## pages of other origins in a real Chromium: what they can make it do at a node's doors; needs chromium and chromium-driver
	@$(VENV_PYTHON) -m tests.browser

kubernetes: venv  ## nodes find each other through a real API server of Kubernetes; builds it with Go (half an hour, once)
	@$(VENV_PYTHON) -m tests.kubernetes

conformance: venv  ## replay another Raft library's own scripts; ANGARIUM_RAFT_CONFORMANCE=DIR says where they are
	@$(VENV_PYTHON) -m pytest tests/conformance $(ARGS)

test-spark:  ## the Spark tests with another PySpark, in a .venv of its own; PYSPARK=4.0.*
	@sh scripts/test_spark.sh '$(PYSPARK)' $(ARGS)

##@ Measure it
bench: venv  ## the benchmarks, each beside its baseline; ONLY=batch for one, ONLY=rounds for what a record alone costs in each process
	@$(VENV_PYTHON) scripts/benchmarks.py $(ONLY)

##@ Keep it
golden: venv  ## write the golden files of a new format version; those of older ones are never touched
	@$(VENV_PYTHON) -m tests.golden.write

proto: venv  ## write what is made from declarations: fields and the page of settings, then src/angarium/proto from proto/
	@$(VENV_PYTHON) scripts/settings.py
	@$(VENV_PYTHON) scripts/permissions.py
	@$(VENV_PYTHON) scripts/proto.py

system:  ## install the system programs the tests use, with apt (as root or through sudo)
	@sh scripts/system.sh

clean:  ## remove .venv, caches, logs and the local cluster with all its data
	@! [ -x .venv/bin/angarium ] || .venv/bin/angarium up --stop 2>/dev/null || true
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .angarium build dist
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

venv:
	@sh scripts/venv.sh

# What a running cluster needs, and nothing to develop with.
base:
	@sh scripts/venv.sh base
