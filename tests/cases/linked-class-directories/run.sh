#!/bin/bash
# A data set whose classes are links to directories on other disks; one class is empty.
# Right: all of it arrives.
. "$(dirname "$0")/../case.sh"
mkdir -p disk1/cats disk2/dogs train/birds
for i in 1 2 3; do echo "c$i" > disk1/cats/$i.txt; echo "d$i" > disk2/dogs/$i.txt; done
ln -s "$work/disk1/cats" train/cats && ln -s ../disk2/dogs train/dogs && echo r > train/readme.txt
cat > job.yaml <<'Y'
roles: {worker: {command: "find -L data -type f | wc -l; ls data | tr '\\n' ' '", resources: {memory: 64MiB}}}
inputs: [{path: train, to: data}]
Y
run job.yaml
grep -q '| 7$' out && grep -q '| birds cats dogs readme.txt' out && pass
fail "$(tr '\n' ';' < out)" "7 files in birds, cats, dogs"
