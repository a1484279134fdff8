#!/bin/bash
# `data put` of three files into a directory in which another run has stored one of these names.
# Right: it is refused and names that file, nothing is stored; with --overwrite all three are.
. "$(dirname "$0")/../case.sh"
target=$work/there
[ "$HOWDAH_ENGINE" = local ] || target=/tmp/howdah-cases/$(basename "$work")
mkdir mine theirs && for name in a b c; do echo mine > mine/$name; done && echo theirs > theirs/b
howdah data put theirs "$target" > all 2>&1 || fail "$(cat all)" "stored"
howdah data put mine "$target" > all 2>&1 && fail "$(cat all)" "refused"
grep -q '/b' all || fail "$(cat all)" "the file is named"
[ "$(howdah data head "$target/b")" = theirs ] || fail "$(howdah data head "$target/b")" theirs
howdah data ls "$target" | grep -q '/[ac]$' && fail "$(howdah data ls "$target")" "b alone"
howdah data put --overwrite mine "$target" > all 2>&1 || fail "$(cat all)" "stored"
[ "$(for name in a b c; do howdah data head "$target/$name" 2>&1; done | sort -u)" = mine ] || fail "$(howdah data ls "$target")" "a, b and c"
[ "$HOWDAH_ENGINE" = local ] || howdah data rm -r "$target" > /dev/null 2>&1
pass
