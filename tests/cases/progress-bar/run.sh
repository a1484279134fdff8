#!/bin/bash
# A program draws a progress bar for some seconds.
# Right: it is shown while it grows.
. "$(dirname "$0")/../case.sh"
cat > bar.py <<'P'
import sys, time
for percent in range(0, 101, 10):
    sys.stderr.write("\r%3d%% epoch 1" % percent)
    sys.stderr.flush()
    time.sleep(0.5)
sys.stderr.write("\n")
P
printf 'roles: {worker: {command: python3 bar.py, resources: {memory: 64MiB}}}\nfiles: [bar.py]\n' > job.yaml
run job.yaml
[ "$(grep -c 'epoch 1' out)" -ge 3 ] && grep -q '! 100% epoch 1$' out && ! grep -q '\\r' out && pass
fail "$(tr '\n' ';' < out)" "the bar at several times, and at its end"
