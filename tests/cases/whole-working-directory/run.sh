#!/bin/bash
# The output is the whole working directory: `from: .`.
# Right: what the program made or changed arrives, and nothing that was there when it started; also of a second try.
. "$(dirname "$0")/../case.sh"
mkdir -p proj data
echo old > proj/same.txt
echo old > proj/changed.txt
echo data > data/d.txt
cat > proj/main.sh <<'S'
echo model > model.pt; mkdir -p runs/1; echo event > runs/1/e; echo new > proj/changed.txt; ln -s model.pt last.pt
mkdir -p howdah-notes; echo mine > howdah-notes/n
S
cat > job.yaml <<'Y'
roles:
  worker:
    command: bash proj/main.sh
    resources: {memory: 64MiB}
files: [proj]
inputs: [{path: data, to: in}]
outputs: [{path: whole, from: ., tasks: "worker:0"}]
Y
run job.yaml
[ "$status" = 0 ] || fail "$status: $(tail -3 all)" "the job succeeds"
found=$(cd whole && find . -type f ! -name _SUCCESS | sort | tr '\n' ' ')
right="./howdah-notes/n ./last.pt ./model.pt ./proj/changed.txt ./runs/1/e "
[ "$found" = "$right" ] || fail "$found" "$right"
[ "$(cat whole/proj/changed.txt)" = new ] || fail "$(cat whole/proj/changed.txt)" "the changed file"
cat > retry.yaml <<'Y'
retries: 1
roles:
  worker:
    command: if [ -e "$MARKS/tried" ]; then echo 2 > two; else touch "$MARKS/tried"; echo 1 > one; exit 1; fi
    env: {MARKS: WORK}
    resources: {memory: 64MiB}
outputs: [{path: retried, from: ./, tasks: "worker:0"}]
Y
sed -i "s#WORK#$work#" retry.yaml
run retry.yaml
[ "$status" = 0 ] || fail "$status: $(tail -3 all)" "the second try succeeds"
[ "$(cd retried && find . -type f ! -name _SUCCESS)" = ./two ] || fail "$(find retried)" "only what the last try made"
sed 's#from: .,#from: ., save: {every: 5},#' job.yaml > saved.yaml
run saved.yaml
[ "$status" = 64 ] && grep -q "outputs.0.save: needs a directory of its own" all || fail "$status: $(cat all)" "refused"
pass
