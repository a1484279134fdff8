#!/bin/bash
# The first try makes half a model and fails; the second one makes its directory anew and writes nothing.
# Right: mkdir succeeds, and nothing of the first try is published.
. "$(dirname "$0")/../case.sh"
cat > job.yaml <<'Y'
retries: 1
roles:
  worker:
    command: mkdir model || exit 7; [ $HOWDAH_EPOCH = 2 ] || { touch model/half; exit 1; }
    resources: {memory: 64MiB}
outputs: [{path: published, from: model}]
Y
run job.yaml
[ "$status" = 0 ] || fail "$status: $(tail -3 all)" "the second try succeeds"
[ -d published ] && [ -z "$(find published -name half)" ] || fail "$(find published)" "nothing of the first try"
pass
