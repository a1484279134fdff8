#!/bin/bash
# A program rewrites its own code, removes a module and leaves a checkpoint there; the same job runs again.
# Right: each task and each job has the code as it was submitted.
. "$(dirname "$0")/../case.sh"
mkdir -p proj/lib && echo 'print("as submitted")' > proj/main.py && echo 'X = 1' > proj/lib/helper.py
cat > job.yaml <<'Y'
roles:
  worker:
    command: cd proj; ls . lib | tr '\n' ' '; python3 main.py; rm lib/helper.py; echo 'print("changed")' > main.py; touch ck.pt; sleep 1
    replicas: 2
    resources: {memory: 64MiB}
files: [proj]
Y
run job.yaml && run job.yaml
right=$(printf 'worker:%s | .: lib main.py  lib: helper.py as submitted\n' 0 1)
[ "$(grep ^worker out | sort)" = "$right" ] && [ "$(cat proj/main.py)" = 'print("as submitted")' ] && pass
fail "$(cat out)" "$right"
