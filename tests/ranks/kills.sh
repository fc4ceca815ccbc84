# A part of tests/ranks.sh: a rank is killed at a random moment, and the run goes on to the bits of one that never was.

echo "== $kills runs that lose a rank"
RANDOM=$((kills + 5))
# killed: kills a random one of the four ranks of the run `killed`, and waits for the launcher.
kill_one() {
  ranks_of killed
  if ((${#pids[@]} != 4)); then fail "four ranks must be there to be killed, got ${#pids[@]}"; fi
  kill -KILL "${pids[RANDOM % 4]}" || fail "a rank must be there to be killed"
  code=0
  wait "$launcher" || code=$?
  if ((code == 0)); then fail "a killed rank must fail the run"; fi
}
hits=0 first=1000000 last=0
for ((kill = 1; kill <= kills; kill++)); do
  rm -rf killed
  start 4 killed
  sleep "$(printf '0.%03d' $((RANDOM % 400)))"
  if ((kill == 1)); then
    # `ps -C engram` and `killall engram` find it.
    ranks_of killed
    if [[ $(<"/proc/${pids[0]}/comm") != engram ]]; then fail "the process must be named engram"; fi
  fi
  began=$SECONDS
  kill_one
  if ((SECONDS - began > 30)); then fail "the others must go soon, got $((SECONDS - began)) s"; fi
  # mpirun does not wait for those that it has killed.
  for pid in "${pids[@]}"; do
    for ((tries = 0; tries < 100; tries++)); do
      if ! is_there "$pid"; then break; fi
      sleep 0.05
    done
    if ((tries == 100)); then fail "process $pid must be gone"; fi
  done
  messages=$(grep -cE 'noticed that process rank|BAD TERMINATION|engram: error' said || true)
  if [[ $messages != 1 ]]; then fail "one message, got $messages"; fi
  if grep -q 'done after' said; then fail "the run must have been going on"; fi
  hits=$((hits + 1))
  if ((hits % 20 == 0)); then echo "   $hits so far"; fi
  set_goal killed
  step=$(step_of killed) first=$((step < first ? step : first)) last=$((step > last ? step : last))
  resumed=$((1 << RANDOM % 3))
  train "$resumed" killed "${endless[@]}" --steps "$goal" --resume || fail "resumed on $resumed ranks after a kill"
  undisturbed
  same_end killed "kill $kill left its mark"
done
if ((hits != kills)); then fail "every kill must hit, got $hits of $kills"; fi
echo "   $hits of $kills hit, in runs with checkpoints of steps $first to $last"

echo "== a rank is killed that validates after every step"
rm -rf killed
validating=(--set training.checkpoint_every=1 training.validate_every=1 training.validate_blocks=100000)
start 4 killed "${validating[@]}"
kill_one
goal=$(($(step_of killed) + 10))
train 4 killed "${endless[@]}" "${validating[@]}" --steps "$goal" --resume || fail "resumed after a kill between validations"
undisturbed "${validating[@]}"
same_end killed "a kill between validations left its mark"

if ((by_night)); then
  echo "== a rank that hangs, and one that dies while mpirun has patience"
  # ended_by SECONDS SIGNAL WORDS: sends it to a rank, after which the ranks must go with these words.
  ended_by() {
    ranks_of lost
    kill -"$2" "${pids[1]}"
    local began=$SECONDS pid tries
    for pid in "${pids[0]}" "${pids[2]}"; do
      for ((tries = 0; tries < 20 * $1; tries++)); do
        if ! is_there "$pid"; then break; fi
        sleep 0.05
      done
      if ((tries == 20 * $1)); then fail "process $pid must be gone after $1 s"; fi
    done
    echo "   after $((SECONDS - began)) s"
    # What they said comes when mpirun has done waiting.
    kill -KILL "${pids[1]}" 2>/dev/null || true
    wait "$launcher" || true
    if [[ $(grep -c 'engram: error: ' said) != 1 ]]; then fail "one message"; fi
    grep -q "engram: error: rank .* rank 1 (.*$3" said || fail "must say: $3"
  }
  export OMPI_MCA_odls_base_sigkill_timeout=10 PRTE_MCA_odls_base_sigkill_timeout=10
  lost=(--set training.batch=12 training.split=3)
  ENGRAM_RANK_TIMEOUT=3 start 3 lost "${lost[@]}"
  ended_by 40 STOP 'must answer within 3 s, got no answer'
  rm -rf lost
  start 3 lost "${lost[@]}"
  ended_by 40 KILL 'which has gone without a word'
  # What it missed comes when it goes on: gradients too long to be kept elsewhere, into memory that must still be there.
  # Long enough for a checkpoint of that size to be written on a busy machine.
  make_wide=(--set model.width=768 training.split=2 training.checkpoint_every=1)
  rm -rf lost
  ENGRAM_RANK_TIMEOUT=10 start 2 lost "${make_wide[@]}"
  ranks_of lost
  kill -STOP "${pids[1]}"
  sleep 14
  kill -CONT "${pids[1]}"
  code=0
  wait "$launcher" || code=$?
  if ((code != 1)); then fail "a rank that was away must end the run with 1, got $code"; fi
  if grep -q 'signal 11\|Segmentation' said; then fail "memory of what is on its way must stay"; fi
  unset OMPI_MCA_odls_base_sigkill_timeout PRTE_MCA_odls_base_sigkill_timeout
fi
