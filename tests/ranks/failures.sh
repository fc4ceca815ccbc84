# A part of tests/ranks.sh: what is wrong is said once, by whom it concerns, and ends all.

"$program" prepare --text <(make_words 2 3000) --out other >said 2>&1 || fail "another text is prepared"
train 1 read --config all_attention.toml --data characters || fail "a run to be evaluated"

echo "== ranks that differ, commands that are one process"
refused() {
  local words=$1 code=$2 got=0
  shift 2
  mpirun "$@" >said 2>&1 || got=$?
  if ((got != code)); then fail "must be refused with $code, got $got: $words"; fi
  if [[ $(grep -c 'engram: error: ' said) != 1 ]]; then fail "one message"; fi
  grep -qF -- "$words" said || fail "must say: $words"
}
# What stands after "last:" runs on the last rank alone. By a script: over a ":" mpirun crashes in Debian 13 (Open MPI 5.0.7).
cat >last_differs <<'SCRIPT'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?}} ranks=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:?}} command=()
for word in "$@"; do
  if [[ $word != last: ]]; then command+=("$word")
  elif ((rank + 1 < ranks)); then break
  else command=(); fi
done
exec "${command[@]}"
SCRIPT
chmod +x last_differs
common=(train --out refused --config all_attention.toml --data characters)
of_run=(evaluate read --data characters)
unlike() {
  local words=$1 code=$2 ranks=$3
  shift 3
  refused "$words" "$code" -n "$ranks" "$folder/last_differs" "$program" "$@"
}
unlike 'training.seed = 1 on rank 0' 2 2 "${common[@]}" --seed 1 last: "$program" "${common[@]}" --seed 2
unlike '--dtype must be the same everywhere' 2 2 "${common[@]}" last: "$program" "${common[@]}" --dtype f64
unlike '--config must be the same everywhere' 2 3 "${common[@]}" last: \
  "$program" train --out refused --config product_key.toml --data characters
unlike 'the data must be the same everywhere' 2 2 "${common[@]}" last: \
  "$program" train --out refused --config all_attention.toml --data other
unlike 'the way of evaluation must be the same everywhere' 2 2 "${of_run[@]}" last: "$program" "${of_run[@]}" --split test
unlike 'rank 1 (' 1 2 "${common[@]}" last: "$program" train --out refused --config all_attention.toml --data nowhere
if "$program" --version | grep -q oneDNN; then
  unlike 'the instructions of the processors must be the same everywhere, got' 2 2 "${common[@]}" last: \
    env ONEDNN_MAX_CPU_ISA=SSE41 "$program" "${common[@]}"
fi
refused 'a split must be train, valid or test' 2 -n 3 "$program" "${of_run[@]}" --split nowhere
refused "losses.npy' must be writable" 1 -n 2 "$program" "${of_run[@]}" --per-token "$folder/nowhere/losses.npy"
refused 'engram count must be started as one process, got 2' 2 -n 2 "$program" count --config all_attention.toml
refused "there is no command 'trian'" 2 -n 3 "$program" trian
began=$SECONDS
refused 'batch must be a multiple of 6' 2 -n 3 "$program" "${common[@]}"
start=$((SECONDS - began))  # of three ranks, which also end at once
if [[ -e refused ]]; then fail "a refused run leaves no folder"; fi

echo "== numbers that no checkpoint may have, and a failure of rank 0 alone"
refused 'every number must be finite and at most 1e+06' 1 -n 2 "$program" train --out diverged "${common[@]:3}" \
  --set schedule.rate=1e7 schedule.warmup=0 training.checkpoint_every=1
grep -q 'there was no checkpoint yet; a smaller schedule.rate' said || fail "it has diverged"
mkdir full
ln -s /dev/full full/metrics.jsonl
began=$SECONDS
refused 'No space left on device' 1 -n 3 "$program" train --out full "${common[@]:3}" --set training.batch=12 training.split=3
# On a machine that has much else to do all takes longer, starts too.
most=$((3 * start > 6 ? 3 * start : 6))
if ((SECONDS - began > most)); then fail "the others must go within $most s, got $((SECONDS - began)) s"; fi

echo "== a full disk on rank 0"
mkdir small
if mount -t tmpfs -o size=4m none small 2>/dev/null; then
  mounted=$folder/small
  on_small=(--config all_attention.toml --data characters --set model.width=64 schedule.warmup=0 schedule.decay=none
    training.validate_every=1 training.report_every=1)
  train 2 small/run "${on_small[@]}" --steps 3 || fail "a run on a small disk"
  train 1 roomy "${on_small[@]}" --steps 5 || fail "the run on a large disk"
  # Room for what is said, and not for another checkpoint.
  head -c 5000000 /dev/zero >small/filler 2>/dev/null || true
  truncate -s -32k small/filler
  cp small/run/checkpoint/model.safetensors before
  refused 'small/run' 1 -n 2 "$program" train --out small/run "${on_small[@]}" --steps 5 --resume
  grep -q 'engram: error: .*No space left on device' said || fail "it must say that the disk is full"
  cmp before small/run/checkpoint/model.safetensors || fail "the last checkpoint must be whole"
  rm small/filler
  train 2 small/run "${on_small[@]}" --steps 5 --resume || fail "resumed with room on the disk"
  cmp roomy/checkpoint/model.safetensors small/run/checkpoint/model.safetensors || fail "a full disk left its mark"
  umount "$mounted"
  mounted=""
else
  echo "   left out: it may not mount a small file system"
fi
