#!/bin/bash
# Mistakes that no other try can mend, in a job with retries; and one that a try may mend.
# Right: a script that is nowhere is refused before anything starts; a missing module, a syntax error and an unknown
# command are run once, and the message names them; any other exception is tried again.
. "$(dirname "$0")/../case.sh"
job() {
    printf 'retries: 2\nroles: {worker: {command: "%s", resources: {memory: 64MiB}}}\n' "$1" > job.yaml
    [ -z "${2:-}" ] || echo "files: [$2]" >> job.yaml
    run job.yaml
}
job 'python3 nosuch.py'
[ "$status" = 64 ] && grep -q "runs 'nosuch.py', which the job does not bring" all || fail "$status: $(cat all)" "refused"
[ ! -d "$HOWDAH_HOME/state/jobs" ] || fail "$(ls "$HOWDAH_HOME/state/jobs")" "no job was made"
echo 'import nosuch' > module.py
echo 'x = = 1' > syntax.py
echo 'raise ValueError("loss is nan")' > other.py
for each in "python3 module.py|module.py|no module 'nosuch'" "python3 syntax.py|syntax.py|syntax.py, line 1: SyntaxError" \
    "pyhton x.py||'pyhton' is not found on PATH"; do
    IFS='|' read -r command file words <<< "$each"
    job "$command" "$file"
    [ "$status" = 1 ] && grep -q "FAILED: .*$words.*; not tried again" all || fail "$status: $(tail -4 all)" "$words"
    [ "$(grep -c 'worker:0 runs' all)" = 1 ] || fail "$(grep -c 'worker:0 runs' all) starts of $command" "one start"
done
job 'python3 other.py' other.py
[ "$(grep -c 'worker:0 runs' all)" = 3 ] || fail "$(grep -c 'worker:0 runs' all) starts" "three starts of what may pass"
grep -q 'FAILED: .*exit code 1: ValueError: loss is nan' all || fail "$(tail -4 all)" "the exception is named"
pass
