#!/bin/bash
# A training that prints to `tee` fails; another one is cut off by `head`.
# Right: the first job fails with the training's exit code, the second one succeeds.
. "$(dirname "$0")/../case.sh"
cat > job.yaml <<'Y'
vars: {reader: tee log, code: 0}
roles: {worker: {command: "python3 -c 'import sys; print(1); sys.exit(${code})' 2>&1 | ${reader}", resources: {memory: 64MiB}}}
Y
run --set code=7 job.yaml
[ "$status" = 1 ] && grep -q 'exit code 7' all || fail "$status: $(cat all)" "it fails with exit code 7"
run --set code=0 job.yaml
[ "$status" = 0 ] || fail "$(cat all)" "nothing has failed"
run -- 'seq 1000000 | head -1'
[ "$status" = 0 ] && [ "$(grep ^worker out)" = "worker:0 | 1" ] && pass
fail "$(cat all)" "head ends seq, which is no failure"
