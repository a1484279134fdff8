#!/bin/bash
# A training draws a bar with colours and fails in the midst of it.
# Right: what is told as the reason is the exception, without escapes or a carriage return.
. "$(dirname "$0")/../case.sh"
cat > bar.py <<'P'
import sys, time
for percent in range(0, 40, 10):
    sys.stderr.write("\r\x1b[32m%3d%%\x1b[0m epoch 1" % percent)
    sys.stderr.flush()
raise RuntimeError("loss is nan")
P
printf 'roles: {worker: {command: python3 bar.py, resources: {memory: 64MiB}}}\nfiles: [bar.py]\n' > job.yaml
run job.yaml
[ "$status" != 0 ] && grep -q '^[0-9:]* .*RuntimeError: loss is nan' all || fail "$status: $(cat -v all)" "the exception"
id=$(grep -o 'local-[0-9]*-[0-9]*-[0-9a-f]*\|application_[0-9]*_[0-9]*' all | head -1)
howdah explain "$id" > told 2>&1; howdah status "$id" >> told 2>&1
grep -q 'loss is nan' told || fail "$(cat -v told)" "the exception in the history"
grep -q "$(printf '[\033\r]')" all told && fail "$(cat -v all told)" "no escapes"
pass
