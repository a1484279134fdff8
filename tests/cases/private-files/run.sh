#!/bin/bash
# A key that nobody else may read is among `files`, alone and in a directory; ssh would refuse it with other bits.
# Right: it stays private, a private script can be executed, and the rest is as it always was.
. "$(dirname "$0")/../case.sh"
mkdir d
for name in key open d/key; do echo k > $name; done
printf '#!/bin/sh\necho executed\n' > tool
chmod 644 open
chmod 600 key d/key
chmod 700 tool
cat > job.yaml <<'Y'
files: [key, open, d, tool]
roles: {worker: {command: "stat -c '%a %n' key open d/key tool; ./tool", resources: {memory: 64MiB}}}
Y
wanted='600 key 600 d/key 700 tool executed'
run job.yaml
got=$(grep -o '[67]00 .*\|executed' out | tr '\n' ' ')
[ "$got" = "$wanted " ] || fail "$(cat all)" "$wanted"
chmod 644 key
run job.yaml
[ "$status" = 0 ] && ! grep -q '600 key' out || fail "$(cat all)" "changed bits count"
pass
