#!/bin/bash
# A program submits a job, waits until it runs, and ends: a pipeline's first step that starts the next one.
# Right: the second job goes on when the first is over, and succeeds.
. "$(dirname "$0")/../case.sh"
[ "$HOWDAH_ENGINE" = local ] || skip "it waits for a file of this machine"
cat > next.yaml <<Y
roles: {worker: {command: "touch $work/begun; for i in \$(seq 600); do [ -e $work/over ] && break; sleep 0.1; done; echo next is done", resources: {memory: 64MiB}}}
Y
cat > first.sh <<S
howdah submit next.yaml 2>&1
for i in \$(seq 600); do [ -e $work/begun ] && exit 0; sleep 0.1; done
exit 1
S
run --memory 512MiB --file next.yaml --file first.sh -- bash first.sh
[ "$status" = 0 ] || fail "$status: $(cat all)" "the first job succeeds"
id=$(grep -o 'local-[0-9]*-[0-9]*-[0-9a-f]*' out | head -1)
touch over
howdah logs --follow "$id" > followed 2>&1
howdah status "$id" 2>&1 | grep -q SUCCEEDED && grep -q 'next is done' followed && pass
fail "$(cat followed; howdah status "$id" 2>&1)" "the second job goes on"
