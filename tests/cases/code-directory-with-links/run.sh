#!/bin/bash
# Code with a linked package and an empty directory to write to.
# Right: the package is imported, the directory is there.
. "$(dirname "$0")/../case.sh"
mkdir -p project/results common/tools && echo 'X = 1' > common/tools/__init__.py && ln -s "$work/common/tools" project/tools
echo 'import tools; open("project/results/r", "w").write("x"); print("tools", tools.X)' > project/main.py
printf 'roles: {worker: {command: "python3 project/main.py", resources: {memory: 64MiB}}}\nfiles: [project]\n' > job.yaml
run job.yaml
grep -q '| tools 1' out && pass
fail "$(tr '\n' ';' < out)" "tools 1"
