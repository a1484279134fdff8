# Two commands: `make demo` shows howdah at work on this machine, `make test` checks it, also on a real YARN.
# Both prepare what they need, once: Python packages into .venv and, as root, Debian packages.
.PHONY: demo test test-all check unit test-yarn test-browser test-ssh test-slurm test-spark test-kubernetes \
	test-engines simulate mutants bench bench-quick proto docs screens lock clean

PYTHON := .venv/bin/python

demo: .venv/.demo
	$(PYTHON) tools/generate.py
	.venv/bin/howdah run examples/digits-tensorflow/job.yaml

# What everybody runs each day: all that needs no cluster, and on real clusters and in a real browser what
# tests/daily.txt lists.
test: .venv/.test
	$(PYTHON) tools/run_tests.py test

# All tests there are, for who calls an issue resolved, and before a release.
test-all: .venv/.engines
	$(PYTHON) tools/kubernetes.py
	$(PYTHON) tools/run_tests.py all

check: .venv/.test
	tools/check

unit: .venv/.test
	$(PYTHON) tools/run_tests.py parts processes

test-yarn: .venv/.test
	$(PYTHON) tools/run_tests.py yarn

test-browser: .venv/.test
	$(PYTHON) tools/run_tests.py browser

test-ssh: .venv/.test
	$(PYTHON) tools/run_tests.py ssh

test-slurm: .venv/.test
	$(PYTHON) tools/run_tests.py slurm

test-spark: .venv/.test
	$(PYTHON) tools/run_tests.py spark

# Kubernetes is built once, from its Go modules.
test-kubernetes: .venv/.engines
	$(PYTHON) tools/kubernetes.py
	$(PYTHON) tools/run_tests.py kubernetes

# What one test does on several engines: images, notebooks, the same scenario everywhere.
test-engines: .venv/.engines
	$(PYTHON) tools/kubernetes.py
	$(PYTHON) tools/run_tests.py engines

# A hundred thousand jobs on a simulated cluster on which everything goes wrong.
simulate: .venv/.test
	$(PYTHON) tests/simulation/run_seeds.py 100000 2

# Deliberate mistakes in what the master decides and whom it lets in: each must be noticed by some test.
mutants: .venv/.test
	$(PYTHON) tools/mutants.py

bench: .venv/.test
	$(PYTHON) tools/generate.py
	$(PYTHON) -m bench

# Some ratios against the kept ones, in a few minutes; `make bench-quick KEEP=--keep` keeps what it measures.
bench-quick: .venv/.test
	$(PYTHON) tools/generate.py
	$(PYTHON) -m bench quick $(KEEP)

proto: .venv/.test
	$(PYTHON) -m grpc_tools.protoc -Isrc --python_out=src --pyi_out=src src/howdah/hadoop/proto/ipc.proto \
		src/howdah/hadoop/proto/namenode.proto src/howdah/hadoop/proto/datanode.proto \
		src/howdah/engines/yarn/proto/hadoop.proto src/howdah/eventfiles/proto/event.proto

# The documents as a site in build/site, in English and Chinese; once its packages are there, without a network.
docs: .venv/docs
	.venv/docs/bin/python tools/site.py

# The pictures of docs/screens and README's recording, of real jobs; tests/browser/test_screens.py makes them, too.
screens: .venv/.test
	tools/frontend dev
	$(PYTHON) frontend/dev/screens.py
	$(PYTHON) tools/recording.py

lock: .venv/.test
	tools/lock

.venv/.demo: requirements/run.txt pyproject.toml tools/prepare
	tools/prepare run
	touch $@

.venv/.test: requirements/test.txt pyproject.toml tools/prepare
	tools/prepare test
	touch $@ .venv/.demo

.venv/docs: requirements/docs.txt | .venv/.demo
	$(PYTHON) -m venv --clear $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	touch $@

.venv/.engines: .venv/.test
	tools/prepare engines
	touch $@

clean:
	rm -rf .venv build dist
