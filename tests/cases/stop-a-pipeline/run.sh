#!/bin/bash
# A training whose output goes through `tee` is cancelled; it prints while it saves.
# Right: it has saved, and its last line is in the log.
. "$(dirname "$0")/../case.sh"
cp "$here/../saver.py" .
cat > job.yaml <<Y
roles: {worker: {command: "python3 saver.py 2>&1 | tee train.log", resources: {memory: 64MiB}}}
env: {MARK: "$work/mark"}
files: [saver.py]
Y
submit_and_wait training job.yaml
howdah cancel "$id" > /dev/null 2>&1
[ "$(cat mark 2>/dev/null)" = saved ] && howdah logs "$id" | grep -q 'saved it' && pass
fail "$(howdah logs "$id" | tr '\n' ';')" "saved, and said so"
