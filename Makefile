# Two commands: `make demo` shows howdah at work on this machine, `make test` checks all of it on real engines.
# Both prepare what they need, once: Python packages into .venv and, as root, Debian packages.
.PHONY: demo test check unit e2e bench proto lock clean

PYTHON := .venv/bin/python

demo: .venv/.demo
	.venv/bin/howdah run examples/digits-tensorflow/job.yaml

test: .venv/.test
	tools/check
	.venv/bin/pytest tests/unit tests/golden tests/contract tests/faults
	.venv/bin/pytest tests/e2e

check: .venv/.test
	tools/check

unit: .venv/.test
	.venv/bin/pytest tests/unit tests/golden tests/contract tests/faults

e2e: .venv/.test
	.venv/bin/pytest tests/e2e

bench: .venv/.test
	$(PYTHON) -m bench

proto: .venv/.test
	cd src/howdah/engines/yarn/proto && ../../../../../$(PYTHON) -m grpc_tools.protoc -I. --python_out=. --pyi_out=. hadoop.proto

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
