# Two commands: `make demo` shows howdah at work on this machine, `make test` checks all of it on real engines.
# Both prepare what they need, once: Python packages into .venv and, as root, Debian packages.
.PHONY: demo test check unit e2e simulate mutants bench proto lock clean

PYTHON := .venv/bin/python
# Tests of clusters wait most of the time: four processes, each with clusters of its own, keep two cores busy.
BESIDE := -n 4 --dist loadfile
BESIDE_CLUSTERS := -n 4 --dist loadfile --no-loadscope-reorder

demo: .venv/.demo
	$(PYTHON) tools/generate.py
	.venv/bin/howdah run examples/digits-tensorflow/job.yaml

# Kubernetes is built once, at low priority beside the first tests, and waited for before those that need it.
test: .venv/.test
	$(PYTHON) tools/kubernetes.py </dev/null >.venv/kubernetes.log 2>&1 &
	tools/check
	.venv/bin/pytest $(BESIDE) tests/unit tests/golden tests/contract tests/faults tests/simulation
	$(PYTHON) tools/kubernetes.py
	.venv/bin/pytest $(BESIDE_CLUSTERS) tests/e2e tests/browser

check: .venv/.test
	tools/check

unit: .venv/.test
	.venv/bin/pytest $(BESIDE) tests/unit tests/golden tests/contract tests/faults tests/simulation

e2e: .venv/.test
	$(PYTHON) tools/kubernetes.py
	.venv/bin/pytest $(BESIDE_CLUSTERS) tests/e2e tests/browser

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
