# `make demo` and `make test` do everything on a fresh machine with Python 3.11 and a C compiler.
# Every target sets up the environment it needs and is quick when nothing changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint format api bench bench-sets interop tensorboard-check clean

$(STAMP): pyproject.toml constraints.txt setup.py $(wildcard stoker/_src/*/native/*.[ch] stoker/_src/formats/images/*.c)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	$(BIN)/python -m compileall -q stoker
	touch $@

demo: $(STAMP)
	$(BIN)/python -m stoker run examples/classifier.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n 2 tests

# Writes the public modules from the `@export` statements and records their names.
api: $(STAMP)
	$(BIN)/python scripts/api_gen.py
	$(BIN)/python scripts/record_names.py

# TensorFlow, in environments of its own: the peer of the speed comparison and the oracle of the live comparison.
.venvs/tf2/.installed:
	$(PYTHON) -m venv .venvs/tf2
	.venvs/tf2/bin/python -m pip install --quiet tensorflow-cpu==2.21.0 tf_keras
	touch $@

# TensorFlow 1.15 needs Python 3.7; without one the comparison with it is left out.
PYTHON37 ?= $(shell for python in python3.7 $$HOME/.pyenv/versions/3.7.*/bin/python; do \
  $$python -c '' 2>/dev/null && echo $$python && break; done)

.venvs/tf1/.installed:
	@if [ -n "$(PYTHON37)" ]; then set -ex; \
	  $(PYTHON37) -m venv .venvs/tf1; \
	  .venvs/tf1/bin/python -m pip install --quiet tensorflow==1.15.5 "protobuf<3.21" "numpy<1.19"; \
	  touch $@; \
	else echo "no Python 3.7 found (PYTHON37=...): going on without TensorFlow 1.15"; fi

# GraphDefs from stoker to TensorFlow and back, values compared; fifty steps of every optimizer; then every op against TensorFlow's (writes docs/ops.*).
interop: $(STAMP) .venvs/tf2/.installed .venvs/tf1/.installed
	$(BIN)/python scripts/interop.py --tf1 .venvs/tf1/bin/python --tf2 .venvs/tf2/bin/python
	$(BIN)/python scripts/trajectories.py --tf1 .venvs/tf1/bin/python --tf2 .venvs/tf2/bin/python
	$(BIN)/python scripts/op_table.py --tf2 $${STOKER_TF2:-.venvs/tf2/bin/python}

# Both sides in turns, alone and beside one and two busy processes; writes benchmarks/results.md and benchmarks/ratios.svg (about 25 minutes).
# A short run of a few programs: make bench BENCH="--rounds 1" PROGRAMS="vae gan" WORKLOADS=mlp_sgd
BENCH ?= --rounds 2
PROGRAMS ?=
WORKLOADS ?=
SETS ?=
TF2 ?= .venvs/tf2/bin/python
bench: $(STAMP) $(if $(filter .venvs/%,$(TF2)),.venvs/tf2/.installed)
	$(BIN)/python -m compileall -q stoker
	$(BIN)/python benchmarks/run.py --peer $(TF2) --ours $(BIN)/python $(BENCH) --busy 0,1,2 --module programs --json benchmarks/latest_programs.json $(PROGRAMS)
	$(BIN)/python benchmarks/run.py --peer $(TF2) --ours $(BIN)/python $(BENCH) --module workloads --json benchmarks/latest_workloads.json $(WORKLOADS)
	$(BIN)/python benchmarks/report.py benchmarks/results.md "Programs=benchmarks/latest_programs.json" "Parts=benchmarks/latest_workloads.json"
	$(BIN)/python benchmarks/plot.py benchmarks/ratios.svg "programs=benchmarks/latest_programs.json" "parts=benchmarks/latest_workloads.json"

# The same for the programs of the other sets; writes benchmarks/sets.md and benchmarks/sets.svg (BENCH="--rounds 1": about half an hour).
bench-sets: $(STAMP) $(if $(filter .venvs/%,$(TF2)),.venvs/tf2/.installed)
	$(BIN)/python -m compileall -q stoker
	$(BIN)/python benchmarks/run.py --peer $(TF2) --ours $(BIN)/python $(BENCH) --busy 0,1,2 --module sets --json benchmarks/latest_sets.json $(SETS)
	$(BIN)/python benchmarks/report.py benchmarks/sets.md "Programs of the other sets=benchmarks/latest_sets.json"
	$(BIN)/python benchmarks/plot.py benchmarks/sets.svg "programs=benchmarks/latest_sets.json"

# TensorBoard on a finished run, in a headless Chromium; Debian's is installed where apt can.
tensorboard-check: $(STAMP)
	@command -v chromium > /dev/null || { command -v apt-get > /dev/null && apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends chromium; } || true
	$(BIN)/python scripts/tensorboard_check.py --screenshots build/tensorboard

clean:
	rm -rf $(VENV) .venvs build *.egg-info
