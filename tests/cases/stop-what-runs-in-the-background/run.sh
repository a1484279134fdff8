#!/bin/bash
# A script starts its training in the background, as for a node with several, and waits; it is cancelled.
# Right: the training has saved, though the shell that waits ends at once.
. "$(dirname "$0")/../case.sh"
cp "$here/../saver.py" .
cat > job.yaml <<Y
roles: {worker: {command: "python3 saver.py & sleep 1000 & wait", resources: {memory: 64MiB}}}
env: {MARK: "$work/mark"}
files: [saver.py]
Y
submit_and_wait training job.yaml
howdah cancel "$id" > /dev/null 2>&1
[ "$(cat mark 2>/dev/null)" = saved ] && pass
fail "no checkpoint: $(howdah logs "$id" | tr '\n' ';')" "the training has its time, though the shell has ended"
