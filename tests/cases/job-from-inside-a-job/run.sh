#!/bin/bash
# A program runs `howdah run`, as a search does that starts its trials; its own limit of memory is that of its task.
# Right: the machine has room for both, so the inner job runs.
. "$(dirname "$0")/../case.sh"
cat > inner.yaml <<'Y'
roles: {worker: {command: "echo inner ran", resources: {memory: 64MiB}}}
Y
run --memory 512MiB --file inner.yaml -- 'howdah run --logs all inner.yaml'
[ "$status" = 0 ] && grep -q 'worker:0 | inner ran' out && pass
fail "$status: $(cat all)" "inner ran"
