#!/bin/bash
# `overwrite: true`, and at the output's path is something that no job has made.
# Right: the output is there, and what was there before is beside it.
. "$(dirname "$0")/../case.sh"
mkdir model && echo mine > model/notes
cat > job.yaml <<'Y'
roles: {worker: {command: "mkdir output; echo m > output/weights", resources: {memory: 64MiB}}}
outputs: [{path: model, overwrite: true, tasks: "worker:0"}]
Y
run job.yaml
[ "$status" = 0 ] && [ -f model/weights ] && [ "$(cat model.replaced-*/notes)" = mine ] && pass
fail "status $status, $(ls -d model*)" "model/weights, and the notes in model.replaced-…"
