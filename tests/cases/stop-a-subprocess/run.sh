#!/bin/bash
# A launcher in Python starts the training as a subprocess in a session of its own, and dies of the first signal.
# Right: the training has saved when its job is cancelled.
. "$(dirname "$0")/../case.sh"
cp "$here/../saver.py" .
echo 'import subprocess; subprocess.run(["python3", "saver.py"], start_new_session=True)' > launch.py
cat > job.yaml <<Y
roles: {worker: {command: python3 launch.py, resources: {memory: 64MiB}}}
env: {MARK: "$work/mark"}
files: [saver.py, launch.py]
Y
submit_and_wait training job.yaml
howdah cancel "$id" > /dev/null 2>&1
[ "$(cat mark 2>/dev/null)" = saved ] && pass
fail "no checkpoint: $(howdah logs "$id" | tr '\n' ';')" "the training has its time, whoever started it"
