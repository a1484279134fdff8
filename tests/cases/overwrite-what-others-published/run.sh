#!/bin/bash
# `overwrite: true`, and at the output's path is a data set of Spark's, which leaves an empty _SUCCESS; then a job's own
# output, to which somebody has added notes.
# Right: both are kept beside the output.
. "$(dirname "$0")/../case.sh"
mkdir model && echo rows > model/part-00000 && touch model/_SUCCESS
cat > job.yaml <<'Y'
roles: {worker: {command: "mkdir output; echo m > output/weights", resources: {memory: 64MiB}}}
outputs: [{path: model, overwrite: true, tasks: "worker:0"}]
Y
run job.yaml
[ "$status" = 0 ] && [ -f model/weights ] && [ "$(cat model.replaced-*/part-00000)" = rows ] ||
    fail "status $status, $(ls -d model*)" "model/weights, and the rows in model.replaced-…"
run job.yaml
[ "$status" = 0 ] && [ "$(ls -d model.replaced-* | wc -l)" = 1 ] || fail "$(ls -d model*)" "howdah's own output is replaced"
echo mine > model/notes
run job.yaml
[ "$status" = 0 ] && [ -f model/weights ] && [ "$(cat model.replaced-*/notes)" = mine ] && pass
fail "status $status, $(ls -d model*)" "model/weights, and the notes in model.replaced-…"
