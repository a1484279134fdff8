#!/bin/bash
# The job's own package is named with -e; the user corrects it and runs the job again.
# Right: each job has the package as it was then, and nothing in its source is new but what the user has written.
. "$(dirname "$0")/../case.sh"
mkdir mine && cp "$here/../packages.py" mine/
printf '[build-system]\nrequires = []\nbuild-backend = "packages"\nbackend-path = ["."]\n[project]\nname = "mine"\nversion = "1"\n' > mine/pyproject.toml
echo '-e ./mine  # as people write it while they develop' > requirements.txt
cat > job.yaml <<'Y'
roles: {worker: {command: "python -c 'import mine; print(mine.VERSION)'", resources: {memory: 64MiB}}}
environment: {requirements: requirements.txt}
Y
for version in first corrected; do
    echo "VERSION = '$version'" > mine/mine.py && find mine -name __pycache__ -prune -o -print | sort > before
    run job.yaml
    grep -q "^worker:0 | $version$" out || fail "$(cat all)" "$version"
    find mine -name __pycache__ -prune -o -print | sort | diff before - || fail "other files in the source" "the source as it was"
done
pass
