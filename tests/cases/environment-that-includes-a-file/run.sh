#!/bin/bash
# A requirements file includes another, which names one package at first and then another; nothing else changes.
# Right: the second job has the second package.
. "$(dirname "$0")/../case.sh"
mkdir wheels && for name in one two; do python3 "$here/../packages.py" "$name" 1 wheels; done
echo '-r base/all.txt' > requirements.txt && mkdir base
cat > job.yaml <<'Y'
roles: {worker: {command: "python -c 'from importlib.util import find_spec; print([n for n in (\"one\", \"two\") if find_spec(n)])'", resources: {memory: 64MiB}}}
environment: {requirements: requirements.txt}
Y
for name in one two; do
    echo "./wheels/$name-1-py3-none-any.whl" > base/all.txt
    run job.yaml
    grep -q "^worker:0 | \['$name'\]$" out || fail "$(cat all)" "$name alone"
done
pass
