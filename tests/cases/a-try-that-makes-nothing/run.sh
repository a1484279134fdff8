#!/bin/bash
# The first try makes half a model and fails; the second one ends well and makes nothing.
# Right: half a model is no model, so the job says that nothing was made.
. "$(dirname "$0")/../case.sh"
cat > job.yaml <<'Y'
retries: 1
roles:
  worker:
    command: if [ $HOWDAH_EPOCH = 1 ]; then mkdir model; echo half > model/weights; exit 1; fi
    resources: {memory: 64MiB}
outputs: [{path: published, from: model}]
Y
run job.yaml
[ "$status" != 0 ] && grep -q 'model' all && [ ! -e published/weights ] && pass
fail "$status: $(tail -3 all)" "a failure that names model"
