#!/bin/bash
# The command starts the training in the background, and ends.
# Right: a line says what became of it.
. "$(dirname "$0")/../case.sh"
printf 'roles: {worker: {command: "nohup sleep 30 & echo started", resources: {memory: 64MiB}}}\n' > job.yaml
run job.yaml
grep -q 'what it has left in the background is stopped, and killed after' out && pass
fail "$(tr '\n' ';' < out)" "a line about the process that was stopped"
