#!/bin/bash
# The program saves its model as one file, and the job names this file as its output.
# Right: the file arrives, also through a link to the newest one; a name that no task made fails the job.
. "$(dirname "$0")/../case.sh"
cat > job.yaml <<'Y'
roles:
  worker:
    command: echo 1 > a.pt; ln -s a.pt last.pt; echo no > other
    resources: {memory: 64MiB}
outputs: [{path: one, from: a.pt, tasks: "worker:0"}, {path: newest, from: last.pt, tasks: "worker:0"}]
Y
run job.yaml
[ "$status" = 0 ] || fail "$status: $(tail -3 all)" "the job succeeds"
[ "$(cd one && find . -type f ! -name _SUCCESS)" = ./a.pt ] || fail "$(find one)" "a.pt alone is at one"
[ "$(cat newest/last.pt)" = 1 ] || fail "$(find newest)" "what last.pt leads to is at newest"
sed -i 's/from: a.pt/from: b.pt/; s/path: one/path: two/; s/path: newest/path: newer/' job.yaml
run job.yaml
[ "$status" = 1 ] && grep -q "made no 'b.pt' to upload" all || fail "$status: $(tail -3 all)" "the missing file is named"
pass
