#!/bin/bash
# A program sorts its input where it lies, and appends to another; a second try reads them again.
# Right: the user's files stay as they were, and each try finds them so.
. "$(dirname "$0")/../case.sh"
mkdir -p data/sub && printf '3\n1\n2\n' > data/numbers && echo row > data/sub/rows
cat > job.yaml <<'Y'
retries: 1
roles:
  worker:
    command: cat in/numbers in/sub/rows | tr '\n' ' '; sort -o in/numbers in/numbers; echo more >> in/sub/rows; [ $HOWDAH_EPOCH = 2 ]
    resources: {memory: 64MiB}
inputs: [{path: data, to: in}]
Y
run job.yaml
[ "$(tr '\n' ' ' < data/numbers)$(cat data/sub/rows)" = "3 1 2 row" ] || fail "$(cat data/numbers data/sub/rows)" "3 1 2 row"
[ "$status" = 0 ] && [ "$(grep -o '3 1 2 row' out | wc -l)" = 2 ] && pass
fail "$(cat out)" "both tries read 3 1 2 row"
