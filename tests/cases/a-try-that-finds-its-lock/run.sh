#!/bin/bash
# A program takes a lock by a file, is killed, and is started again; by its checkpoint it knows how far it was.
# Right: the lock is of the first try alone; the checkpoint is there.
. "$(dirname "$0")/../case.sh"
cat > job.yaml <<'Y'
retries: 1
checkpoint: {path: stored, local: ck}
roles:
  worker:
    command: |
      set -o noclobber; echo $$ > run.lock || exit 9
      mkdir -p ck; ls ck
      [ $HOWDAH_EPOCH = 2 ] || { echo 1 > ck/step-1; kill -KILL $$; }
    resources: {memory: 64MiB}
Y
run job.yaml
[ "$status" = 0 ] && grep -q '^worker:0 | step-1$' out && pass
fail "$status: $(tail -5 all)" "the second try takes the lock, and has step-1"
