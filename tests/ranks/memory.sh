# A part of tests/ranks.sh: a rank that runs out of memory, and a table that ranks hold together.

echo "== one rank of two runs out of memory"
# The past of its blocks becomes longer and longer, and so its steps need more and more. It ends before a product is large
# enough for oneDNN, which makes its kernels at the first one, and crashes (2.6) where that finds no memory.
growing=(--config all_attention.toml --data characters --set model.width=64 model.max_span=8000 schedule.warmup=0
  schedule.decay=none training.checkpoint_every=5 training.validate_every=100000 training.report_every=100000)
mpirun -n 2 "$program" train --out "$folder/short" "${growing[@]}" --steps 100000 >said 2>&1 &
launcher=$!
first_checkpoint short
ranks_of short
# The second of them: from now on it gets nothing more.
poor=""
for pid in "${pids[@]}"; do
  if tr '\0' '\n' <"/proc/$pid/environ" | grep -qE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=1$'; then poor=$pid; fi
done
prlimit --pid "$poor" --as="$(($(awk '/^VmSize/ { print $2 }' "/proc/$poor/status") * 1024))"
code=0
wait "$launcher" || code=$?
if ((code != 1)); then fail "a rank without memory must end the run with 1, got $code"; fi
if [[ $(grep -c 'engram: error: ' said) != 1 ]]; then fail "one message"; fi
grep -qE "engram: error: rank 1 \($(hostname), process $poor\): (.*: )?(out of memory|memory: )" said ||
  fail "it must name the rank, its host, and memory"
for pid in "${pids[@]}"; do if is_there "$pid"; then fail "all must end"; fi; done
goal=$(($(step_of short) + 3))
train 2 short "${growing[@]}" --steps "$goal" --resume || fail "resumed with memory again"
"$program" train --out ample "${growing[@]}" --steps "$goal" >said 2>&1 || fail "the run with memory"
cmp ample/checkpoint/model.safetensors short/checkpoint/model.safetensors || fail "want of memory left its mark"

echo "== one rank of two may have less memory than its part of the model"
# limited KILOBYTES COMMAND...: the last rank may have so many of addresses; none: all of them.
cat >limited <<'SCRIPT'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} ranks=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-1}}
if ((rank + 1 == ranks)); then ulimit -v "$1"; fi
shift
exec "$@"
SCRIPT
chmod +x limited
code=0
mpirun -n 2 "$folder/limited" 1000000 "$program" train --out refused --config all_attention.toml --data characters \
  --set model.width=8192 >said 2>&1 || code=$?
if ((code != 1)); then fail "a model above the limit must be refused with 1, got $code"; fi
if [[ $(grep -c 'engram: error: ' said) != 1 ]]; then fail "one message"; fi
grep -qF 'engram: error: rank 1 (' said || fail "it must name the rank"
grep -qF 'what a process may take (ulimit -v) beside what it has, ' said || fail "it must name the limit"
if [[ -e refused ]]; then fail "a refused run leaves no folder"; fi

if ((by_night)); then
  echo "== a table that one process may not hold, and two may"
  # A million values of 64 numbers, 256 MiB. Without the addresses that the system's allocator keeps for each thread.
  table=(--config product_key.toml --data characters --set model.width=64 product_key.subkeys=1024
    optimizer.table_kind=row_adagrad schedule.steps=3 schedule.warmup=1 training.checkpoint_every=3
    training.validate_every=3)
  "$program" train --out table-1 "${table[@]}" >said 2>&1 || fail "one process without a limit"
  export MALLOC_ARENA_MAX=1
  # How much a process has before its model depends on libraries: the least, in KB, that is enough for two.
  limit=200000
  until rm -rf table-2 &&
    (ulimit -v "$limit" && exec mpirun -n 2 "$program" train --out "$folder/table-2" "${table[@]}") >said 2>&1; do
    limit=$((limit + 10000))
    if ((limit > 420000)); then fail "two processes under a limit that one needs"; fi
  done
  code=0
  (ulimit -v "$limit" && exec "$program" train --out refused "${table[@]}") >said 2>&1 || code=$?
  if ((code != 1)); then fail "one process must be refused with 1 under $limit KB, got $code"; fi
  grep -qF 'what a process may take (ulimit -v) beside what it has, ' said ||
    fail "the limit of $limit KB must refuse one process"
  if [[ -e refused ]]; then fail "a refused run leaves no folder"; fi
  unset MALLOC_ARENA_MAX
  same_run table-1 table-2
fi
