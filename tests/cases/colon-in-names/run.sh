#!/bin/bash
# Names with the time in them (`train_12:30.log`): a file, a directory, an archive, an input, and what the program makes.
# HDFS and YARN take no colon in a name.
# Right: all arrive under their own names, and everything that the program has made is at the output.
. "$(dirname "$0")/../case.sh"
echo code > run_12:30.cfg
mkdir lib:1 in && echo lib > lib:1/part && echo row > in/day_12:30.csv && tar cf pack.tar -C lib:1 part
cat > job.yaml <<'Y'
roles: {worker: {command: "cat run_12:30.cfg lib:1/part at:1/part in/day_12:30.csv; mkdir output; echo m > output/model; echo l > output/at_12:30.log", resources: {memory: 64MiB}}}
files: ["run_12:30.cfg", "lib:1"]
archives: ["pack.tar#at:1"]
inputs: [{path: in, to: in}]
outputs: [{path: made, tasks: "worker:0"}]
Y
run job.yaml
[ "$status" = 0 ] && [ "$(grep -c '^worker:0 | \(code\|lib\|row\)$' out)" = 4 ] || fail "$status: $(cat all)" "code, lib, lib, row"
[ "$HOWDAH_ENGINE" = local ] || pass
[ "$(cat made/model made/at_12:30.log 2>/dev/null)" = "$(printf 'm\nl')" ] && pass
fail "$(ls made)" "model and at_12:30.log"
