#!/bin/bash
# A program prints coloured lines, one of them cut off by its end; nobody reads them in a terminal.
# Right: no escape and nothing of one is in what `run` shows, and every word is; a file gets the program's bytes.
. "$(dirname "$0")/../case.sh"
run -- "printf '\\033[1;31mERROR\\033[0m of \\033[4mstep 3\\033[24m\\n\\033]0;title\\007left \\033[3'"
[ "$status" = 0 ] || fail "$status: $(cat all)" "the job succeeds"
id=$(grep -o 'local-[0-9]*-[0-9]*-[0-9a-f]*' all | head -1)
grep -q 'ERROR of step 3' out && grep -q left out || fail "$(cat -v out)" "every word"
! grep -q "$(printf '\033')\|\\\\x1b\|\\\\033\|\[0m\|title" out || fail "$(cat -v out)" "no escape"
howdah logs "$id" > logs
grep -q "$(printf '\033\\[0m of ')" logs && ! grep -q '.==> ' logs && pass
fail "$(cat -v logs)" "the program's own bytes, and each heading in a line of its own"
