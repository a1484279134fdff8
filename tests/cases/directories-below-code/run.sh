#!/bin/bash
# Outputs, a checkpoint and a directory to make lie in a directory of `files`, and two jobs use it.
# Right: the second job finds nothing of the first, and its outputs are its own.
. "$(dirname "$0")/../case.sh"
mkdir proj && echo 1 > proj/main.py
cat > job.yaml <<'Y'
vars: {run: 1}
roles:
  worker:
    command: ls proj/logs proj/model proj/ck; echo ${run} > proj/model/run-${run}; touch proj/ck/step-${run}
    resources: {memory: 64MiB}
files: [proj]
directories: [proj/logs, proj/model]
outputs: [{path: published, from: proj/model, overwrite: true}]
checkpoint: {path: "saved-${run}", local: proj/ck}
Y
run --set run=1 job.yaml
run --set run=2 job.yaml
[ "$status" = 0 ] || fail "$(tail -5 all)" "directories may lie there"
grep -q 'run-1\|step-1' out && fail "$(cat out)" "nothing of the first job"
[ "$(find published -name 'run-*' -printf '%f ')" = "run-2 " ] && pass
fail "$(find published)" "run-2 alone"
