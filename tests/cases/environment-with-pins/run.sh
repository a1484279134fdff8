#!/bin/bash
# Versions are in a file of constraints, and packages in a directory; the user pins another version.
# Right: the next job has that version.
. "$(dirname "$0")/../case.sh"
mkdir wheels && for version in 1 2; do python3 "$here/../packages.py" mine "$version" wheels; done
printf -- '--no-index\n--find-links wheels\n-c pins.txt\nmine\n' > requirements.txt
cat > job.yaml <<'Y'
roles: {worker: {command: "python -c 'import mine; print(\"version\", mine.VERSION)'", resources: {memory: 64MiB}}}
environment: {requirements: requirements.txt}
Y
for version in 1 2; do
    echo "mine==$version" > pins.txt
    run job.yaml
    grep -q "^worker:0 | version $version$" out || fail "$(cat all)" "version $version"
done
pass
