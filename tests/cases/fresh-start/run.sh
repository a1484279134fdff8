#!/bin/bash
# A new training is to begin anew, though an earlier job has left a checkpoint at the same path.
# Right: with --fresh it begins at nothing, the earlier checkpoint stays beside, complete; and nothing else is moved.
. "$(dirname "$0")/../case.sh"
cat > job.yaml <<'Y'
roles:
  worker:
    command: cd "$HOWDAH_CHECKPOINT_DIR"; ls; n=$(cat step 2>/dev/null || echo 0); echo $((n + 1)) > step; echo "step $(cat step)"
    resources: {memory: 64MiB}
checkpoint: {path: ck}
Y
run job.yaml
run job.yaml
grep -q 'step 2' out || fail "$(cat all)" "without --fresh the second goes on"
run --fresh job.yaml
[ "$status" = 0 ] && grep -q 'step 1' out || fail "$(cat all)" "with --fresh it begins anew"
kept=$(ls -d ck.before-*)
grep -q "the checkpoint of earlier jobs is kept at .*$kept" all || fail "$(cat all)" "where it is kept is said"
[ "$(cat "$kept/step") $(cat ck/step)" = "2 1" ] || fail "$(grep . "$kept/step" ck/step)" "both are there"
run --fresh --on nowhere job.yaml
[ "$(cat ck/step)" = 1 ] && [ "$(ls -d ck.before-* | wc -l)" = 1 ] || fail "$(ls -d ck*)" "an error moves nothing"
sed -i 's/path: ck/path: ./' job.yaml
run --fresh job.yaml
[ "$status" = 64 ] && grep -q -e "--fresh: would replace .*, which is the" all || fail "$status $(cat all)" "refused"
sed -i '/^checkpoint/d; s/; n=.*/"/' job.yaml
sed -i 's/command: .*/command: "true"/' job.yaml
run --fresh job.yaml
[ "$status" = 64 ] && grep -q "has no checkpoint.path" all || fail "$status $(cat all)" "without a checkpoint it says so"
pass
