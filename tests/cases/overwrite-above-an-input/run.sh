#!/bin/bash
# `overwrite: true`, and the output is the directory that holds the job's input.
# Right: refused before anything starts, and the data stay.
. "$(dirname "$0")/../case.sh"
mkdir -p data/train && echo precious > data/train/a.csv && echo keep > data/README
cat > job.yaml <<'Y'
roles: {worker: {command: "mkdir output; echo m > output/model", resources: {memory: 64MiB}}}
inputs: [{path: data/train, to: in}]
outputs: [{path: data, overwrite: true}]
Y
run job.yaml
[ "$status" = 66 ] && [ -f data/train/a.csv ] && [ -f data/README ] && grep -q 'holds inputs.0.path' out && pass
fail "status $status, $(ls data)" "refused, and the data are there"
