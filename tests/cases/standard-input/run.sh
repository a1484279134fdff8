#!/bin/bash
# A program, or data, comes by standard input: `howdah run --stdin -- python3 - < x.py`.
# Right: each task reads all of it, also behind a pipeline; without --stdin nothing is taken, and that is said.
. "$(dirname "$0")/../case.sh"
echo 'import os; print("ran", os.environ["HOWDAH_INDEX"])' > x.py
run --stdin --replicas 2 --memory 64MiB -- python3 - < x.py
[ "$status" = 0 ] || fail "$status: $(tail -3 all)" "the job succeeds"
[ "$(grep -o 'ran [01]' out | sort | tr '\n' ' ')" = "ran 0 ran 1 " ] || fail "$(cat out)" "both tasks ran the program"
printf 'b\na\na' > lines
run --stdin --memory 64MiB -- 'sort -u | tr "\n" "+"' < lines
grep -q 'a+b+' out || fail "$(cat all)" "the pipeline reads it"
run --stdin --memory 64MiB -- wc -c < /dev/null
grep -q ': *0$\|^0$\| 0$' out || fail "$(cat all)" "an empty input is empty"
while read -r line; do
    run --memory 64MiB -- true
    echo "$line" >> read
done < <(printf '1\n2\n3\n')
[ "$(wc -l < read)" = 3 ] || fail "$(cat read)" "without --stdin the loop's own input is left alone"
pass
