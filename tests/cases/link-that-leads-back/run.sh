#!/bin/bash
# An input with a link to the directory above, and one to nothing.
# Right: the rest arrives, and a line names both before the job starts.
. "$(dirname "$0")/../case.sh"
mkdir -p data/a && echo x > data/a/x && ln -s .. data/a/up && ln -s nowhere data/gone
cat > job.yaml <<'Y'
roles: {worker: {command: "find -L in -type f", resources: {memory: 64MiB}}}
inputs: [{path: data, to: in}]
Y
run job.yaml
grep -q 'data/a/up is left out: it leads back' out && grep -q 'data/gone is left out' out && grep -q '| in/a/x' out && pass
fail "$(tr '\n' ';' < out)" "in/a/x, and both links are named"
