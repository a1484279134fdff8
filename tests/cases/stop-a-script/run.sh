#!/bin/bash
# A training that a script starts is cancelled while it takes two seconds to save.
# Right: it has saved.
. "$(dirname "$0")/../case.sh"
cp "$here/../saver.py" . && printf '#!/bin/bash\nset -e\npython3 saver.py\necho done\n' > run_it.sh && chmod +x run_it.sh
cat > job.yaml <<Y
roles: {worker: {command: ./run_it.sh, resources: {memory: 64MiB}}}
env: {MARK: "$work/mark"}
files: [saver.py, run_it.sh]
Y
submit_and_wait training job.yaml
howdah cancel "$id" > /dev/null 2>&1
[ "$(cat mark 2>/dev/null)" = saved ] && pass
fail "no checkpoint" "the trainer has its time, whoever started it"
