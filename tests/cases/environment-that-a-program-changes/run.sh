#!/bin/bash
# A program installs something into its environment, and breaks a package there; the same job runs again.
# Right: each task has the environment as it was made.
. "$(dirname "$0")/../case.sh"
mkdir -p pack/small && echo 'X = "as made"' > pack/small/__init__.py
printf '[project]\nname = "small-package"\nversion = "1"\n[tool.setuptools]\npackages = ["small"]\n' > pack/pyproject.toml
echo ./pack > requirements.txt
cat > job.yaml <<'Y'
roles:
  worker:
    command: python where.py
    replicas: 2
    resources: {memory: 128MiB}
environment: {requirements: requirements.txt}
files: [where.py]
Y
cat > where.py <<'P'
import pathlib, small, time
here = pathlib.Path(small.__file__).parent
print(small.X, sorted(path.name for path in here.parent.glob("small*.py")), flush=True)
(here.parent / "small_new.py").write_text("")
time.sleep(1)
here.joinpath("__init__.py").unlink()
here.joinpath("__init__.py").write_text("X = 'changed'")
P
run job.yaml && [ "$status" = 0 ] || fail "$(tail -5 all)" "the environment can be written"
run job.yaml
[ "$(grep ^worker out | sort)" = "$(printf 'worker:%s | as made []\n' 0 1)" ] && pass
fail "$(cat out)" "as made, without what others have installed"
