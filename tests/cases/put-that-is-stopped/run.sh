#!/bin/bash
# `data put` of a small and a large file is told to end while it writes the large one.
# Right: it ends in one line (exit 130), and no part of the large file is left.
. "$(dirname "$0")/../case.sh"
[ "$HOWDAH_ENGINE" = local ] || skip "it looks into a directory of this machine"
mkdir big && echo small > big/a && truncate -s 8G big/b
howdah data put big "$work/there" > all 2>&1 &
put=$!
for _ in $(seq 600); do
    [ -n "$(find there -name '.b.*.part' 2>/dev/null)" ] && break
    sleep 0.05
done
kill -TERM $put
wait $put
status=$?
[ $status = 130 ] && [ "$(wc -l < all)" = 1 ] && [ "$(find there -type f | grep -v '/a$')" = "" ] && pass
fail "$status: $(cat all; find there -type f)" "130, nothing of b"
