#!/bin/bash
# Names with blanks, quotes, patterns, percent signs, a backslash, colons, a leading dash and other scripts.
# Right: an output has each input under its own name.
. "$(dirname "$0")/../case.sh"
mkdir in
for name in 'two words ' "it's" 'say "x"' 'a*b' '[ab]?' '50%' 'a%20b' 'a%3Ab' 'a:b' 'back\slash' -rf '数据' 'é' '{a,b}' 'a#b?c' '~' '$HOME' 'a&b;c'; do
    printf '%s' "$name" > "in/$name"
done
cat > job.yaml <<'Y'
roles: {worker: {command: "cp -a in model; ls model | wc -l", resources: {memory: 64MiB}}}
inputs: [{path: in, to: in}]
outputs: [{path: made, from: model, tasks: "worker:0"}]
Y
run job.yaml
[ "$status" = 0 ] && grep -q "^worker:0 | $(ls in | wc -l)$" out || fail "$status: $(cat all)" "all inputs"
[ "$HOWDAH_ENGINE" = local ] || pass
for path in in/*; do
    [ "$(cat "made/${path#in/}")" = "${path#in/}" ] || fail "$(ls made)" "${path#in/}"
done
pass
