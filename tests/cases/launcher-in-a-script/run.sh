#!/bin/bash
# torchrun in a script that two tasks of a job file run, without its framework: each would train a model of its own.
# Right: refused, with the script's name.
. "$(dirname "$0")/../case.sh"
printf '#!/bin/bash\ntorchrun train.py\n' > train.sh
printf 'framework: pytorch\nfiles: [train.sh]\nroles: {worker: {command: bash train.sh, replicas: 2}}\n' > job.yaml
run job.yaml
[ "$status" != 0 ] && grep -q 'torchrun (train.sh) in each of 2 tasks.*write `framework: torchrun`' out && pass
fail "status $status: $(tr '\n' ';' < out)" "refused, with the script's name"
