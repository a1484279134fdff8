# Two commands: `make demo` shows howdah at work on this machine, `make test` checks all of it on real engines.
# Both prepare what they need, once: Python packages into .venv and, as root, Debian packages.
.PHONY: demo test check unit e2e simulate mutants bench proto lock clean

PYTHON := .venv/bin/python
# Tests wait most of the time, for programs or for clusters: two processes, each with a cluster of its own.
BESIDE := -n 2 --dist loadfile

demo: .venv/.demo
	$(PYTHON) tools/generate.py
	.venv/bin/howdah run examples/digits-tensorflow/job.yaml

test: .venv/.test
	tools/check
	.venv/bin/pytest $(BESIDE) tests/unit tests/golden tests/contract tests/faults tests/simulation
	.venv/bin/pytest $(BESIDE) tests/e2e tests/browser

check: .venv/.test
	tools/check

unit: .venv/.test
	.venv/bin/pytest $(BESIDE) tests/unit tests/golden tests/contract tests/faults tests/simulation

e2e: .venv/.test
	.venv/bin/pytest $(BESIDE) tests/e2e tests/browser

# A hundred thousand jobs on a simulated cluster on which everything goes wrong.
simulate: .venv/.test
	$(PYTHON) tests/simulation/run_seeds.py 100000 2

# Deliberate mistakes in what the master decides and whom it lets in: each must be noticed by some test.
mutants: .venv/.test
	$(PYTHON) tools/mutants.py

bench: .venv/.test
	$(PYTHON) tools/generate.py
	$(PYTHON) -m bench

proto: .venv/.test
	$(PYTHON) -m grpc_tools.protoc -Isrc --python_out=src --pyi_out=src src/howdah/hadoop/proto/ipc.proto \
		src/howdah/hadoop/proto/namenode.proto src/howdah/hadoop/proto/datanode.proto \
		src/howdah/engines/yarn/proto/hadoop.proto src/howdah/eventfiles/proto/event.proto

lock: .venv/.test
	tools/lock

.venv/.demo: requirements/run.txt pyproject.toml tools/prepare
	tools/prepare run
	touch $@

.venv/.test: requirements/test.txt pyproject.toml tools/prepare
	tools/prepare test
	touch $@ .venv/.demo

clean:
	rm -rf .venv build dist
