#!/bin/bash
# torchrun in two tasks of a job file without its framework: each would train a model of its own.
# Right: refused, with the line to write.
. "$(dirname "$0")/../case.sh"
printf 'framework: pytorch\nroles: {worker: {command: torchrun train.py, replicas: 2}}\n' > job.yaml
run job.yaml
[ "$status" != 0 ] && grep -q 'would not find each other.*write `framework: torchrun`' out && pass
fail "status $status: $(tr '\n' ';' < out)" "refused, with the line to write"
