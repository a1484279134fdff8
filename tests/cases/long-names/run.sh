#!/bin/bash
# Names as long as file systems have them (255 bytes), of a file of the job, an input, an output and a checkpoint.
# Right: all arrive under their names.
. "$(dirname "$0")/../case.sh"
long=$(printf 'n%.0s' $(seq 251))
mkdir in && echo input > "in/in-$long" && echo code > "py-$long"
cat > job.yaml <<Y
roles: {worker: {command: "cat in/in-* py-*; mkdir -p model ck; echo m > model/out$long; echo c > ck/ckp$long", resources: {memory: 64MiB}}}
files: ["py-$long"]
inputs: [{path: in, to: in}]
outputs: [{path: made, from: model, tasks: "worker:0"}]
checkpoint: {path: stored, local: ck, valid: all}
Y
run job.yaml
[ "$status" = 0 ] && [ "$(grep -c '^worker:0 | \(input\|code\)$' out)" = 2 ] || fail "$status: $(cat all)" "input and code"
grep -q 'could not be\|not stored\|not uploaded' all && fail "$(cat all)" "all is kept"
[ "$HOWDAH_ENGINE" = local ] || pass
[ "$(cat "made/out$long" "stored/ckp$long")" = "$(printf 'm\nc')" ] && pass
fail "$(ls made stored)" "both under their names"
