#!/bin/bash
# The directory of an output is a link to a directory elsewhere, which anybody may have made.
# Right: nothing of that directory is uploaded, and the job says why; a link to a directory of the task is followed.
. "$(dirname "$0")/../case.sh"
mkdir elsewhere && echo private > elsewhere/key
cat > job.yaml <<Y
vars: {target: "$work/elsewhere"}
roles: {worker: {command: "mkdir own; echo m > own/weights; ln -s \${target} output", resources: {memory: 64MiB}}}
outputs: [{path: model, from: output, tasks: "worker:0"}]
Y
run job.yaml
[ "$status" = 1 ] && grep -q "output is a link out of the working directory, to .*/elsewhere" all && [ ! -e model ] ||
    fail "$status: $(cat all)" "it fails and says why"
run --set target=own job.yaml
[ "$status" = 0 ] && [ -f model/weights ] || fail "$status: $(cat all)" "model/weights"
cat > failing.yaml <<Y
roles: {worker: {command: "mkdir good; echo m > good/weights; ln -s $work/elsewhere bad; exit 3", resources: {memory: 64MiB}}}
outputs:
  - {path: good, from: good, tasks: "worker:0", keep_failed: true}
  - {path: bad, from: bad, tasks: "worker:0", keep_failed: true, optional: true}
Y
run failing.yaml
[ "$status" = 1 ] && [ -f good.failed/weights ] && [ ! -e bad.failed ] && pass
fail "$status: $(cat all)" "the other output of the failed job is kept"
