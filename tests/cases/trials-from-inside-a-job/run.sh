#!/bin/bash
# A search starts three trials at once from inside a job, each a job of its own; one of them fails.
# Right: all three run, and the search sees which has failed.
. "$(dirname "$0")/../case.sh"
cat > trial.yaml <<'Y'
roles: {worker: {command: 'echo "trial $TRIAL ran"; [ $TRIAL != 2 ]', resources: {memory: 64MiB}}}
Y
cat > search.sh <<'S'
for trial in 1 2 3; do
    { howdah run --logs all --set env.TRIAL=$trial trial.yaml; echo "trial $trial ended with $?"; } 2>&1 &
done
wait
S
run --memory 512MiB --file trial.yaml --file search.sh -- bash search.sh
[ "$(grep -o 'trial [123] ran$' out | sort -u | wc -l)" = 3 ] || fail "$(cat all)" "three trials"
grep -q 'trial 1 ended with 0$' out && grep -q 'trial 3 ended with 0$' out && ! grep -q 'trial 2 ended with 0$' out && pass
fail "$(cat all)" "trial 2 alone fails"
