#!/bin/bash
# `data get --overwrite` of a large file over an older one is told to end while it writes.
# Right: it ends in one line (exit 130), and the older file is whole.
. "$(dirname "$0")/../case.sh"
[ "$HOWDAH_ENGINE" = local ] || skip "it looks into a directory of this machine"
[ "$(df --output=avail -m . | tail -1)" -gt 8192 ] || skip "no room for 4 GiB"
truncate -s 4G model.bin && mkdir here && echo older > here/model.bin
howdah data get --overwrite "$work/model.bin" here > all 2>&1 &
get=$!
for _ in $(seq 600); do
    [ "$(find here -type f | wc -l)" -gt 1 ] && break
    sleep 0.05
done
kill -TERM $get
wait $get
status=$?
[ $status = 130 ] && [ "$(wc -l < all)" = 1 ] && [ "$(cat here/model.bin | head -c 9)" = older ] || fail "$status: $(cat all)" "130, the older file"
[ "$(find here -type f)" = here/model.bin ] && pass
fail "$(find here)" "no part stays"
