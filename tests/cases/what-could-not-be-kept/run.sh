#!/bin/bash
# The last checkpoint can't be stored, since a file lies where its directory was; a link of the output leads out.
# Right: the program has done its work, and whoever ran it reads in the terminal and in the history what is lost.
. "$(dirname "$0")/../case.sh"
[ "$HOWDAH_ENGINE" = local ] || skip "the program gets at the place of the checkpoints on this machine alone"
STORED=$PWD/stored
cat > job.yaml <<'Y'
checkpoint: {path: stored, local: ck}
roles:
  worker:
    command: |
      mkdir -p ck model && echo 1 > ck/step-1 && echo w > model/w && ln -s /etc/hostname model/name
      rm -rf "$STORED" && touch "$STORED"
    resources: {memory: 64MiB}
outputs: [{path: published, from: model}]
Y
run --set "env.STORED=$STORED" job.yaml
[ "$status" = 0 ] || fail "$status: $(tail -3 all)" "the program succeeds"
grep -q '^[0-9:]* worker:0: checkpoints could not be stored in .*stored: ' all || fail "$(cat all)" "the checkpoint is named"
grep -q '^[0-9:]* worker:0: model/name: .*; it is not uploaded' all || fail "$(cat all)" "the link is named"
id=$(grep -o 'local-[0-9]*-[0-9]*-[0-9a-f]*' all | head -1)
HOWDAH_LANGUAGE=zh howdah status "$id" > told 2>&1
grep -q '检查点无法存到' told || fail "$(cat told)" "the history says it in Chinese, too"
cat > job.yaml <<'Y'
checkpoint: {path: others, local: ck}
roles:
  worker:
    command: |
      mkdir -p ck && ln -s /etc ck/link
      python3 -c "import zipfile; zipfile.ZipFile('ck/step-1.pt', 'w').writestr('data', 'x')"
      head -c 30 ck/step-1.pt > ck/step-2.pt
    resources: {memory: 64MiB}
Y
run job.yaml
[ "$status" = 0 ] && [ -s others/step-1.pt ] || fail "$status: $(cat all)" "the whole checkpoint is stored"
for name in step-2.pt link; do
    grep -q "^[0-9:]* worker:0: $name: .*; it is not stored in .*/others" all || fail "$(cat all)" "$name is named"
done
pass
