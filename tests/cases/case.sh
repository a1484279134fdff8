# Sourced by each case: a fresh directory to work in, a home of its own, and how a case ends.
# Exit status: 0 PASS, 1 FAIL, 77 SKIP. `howdah` is taken from PATH; HOWDAH_HOME is set by whoever runs the case.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
export HOWDAH_HOME=${HOWDAH_HOME:-$work/home} HOWDAH_LANGUAGE=en HOWDAH_ENGINE=${HOWDAH_ENGINE:-local}
export HOWDAH_LOCAL_VCORES=16

pass() { echo "PASS $(basename "$here")"; exit 0; }
fail() { echo "FAIL $(basename "$here"): got: $1 | right: $2"; exit 1; }
skip() { echo "SKIP $(basename "$here"): $1"; exit 77; }

# run ARGUMENT…: `howdah run`, its output in $work/out without howdah's own lines, its status in $status.
run() {
    howdah run --logs all --on-interrupt cancel "$@" > all 2>&1
    status=$?
    grep -v '^[0-9][0-9]:[0-9][0-9]:[0-9][0-9] \|^page: \|^submitted ' all > out
}

# submit_and_wait TEXT ARGUMENT…: submits a job, and waits until it has printed TEXT; its id in $id.
submit_and_wait() {
    text=$1
    shift
    id=$(howdah submit "$@" 2>/dev/null | grep -o 'local-[0-9]*-[0-9]*-[0-9a-f]*\|application_[0-9]*_[0-9]*' | head -1)
    for _ in $(seq 300); do
        howdah logs "$id" 2>/dev/null | grep -q "$text" && return
        sleep 0.2
    done
    fail "no '$text' in the output of $id" "a job that runs"
}
