#!/usr/bin/env bash
# Runs the program as several processes, by mpirun, and compares what they leave with what one process leaves: bytes of
# checkpoints, numbers of metrics. Then it kills ranks, fills a disk and starts ranks that differ.
#   bash tests/ranks.sh PROGRAM [KILLS]      PROGRAM: build/release/apps/engram; KILLS: how many runs lose a rank, 10
# The test ranks_program of ctest, where MPI was found; tests/nightly.sh has it with 100 kills, and above ten with ranks
# that hang, which takes a minute more.
set -euo pipefail

program=${1:?tests/ranks.sh: which program?}
kills=${2:-10}
# Open MPI 4, and 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 ENGRAM_RANK_TIMEOUT=${ENGRAM_RANK_TIMEOUT:-60}
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-ranks.XXXXXX")
mounted=""
clean() {
  if [[ -n $mounted ]]; then umount "$mounted" || true; fi
  rm -rf "$folder"
}
trap clean EXIT
cd -- "$folder"

fail() {
  printf 'tests/ranks.sh: %s\n' "$*" >&2
  if [[ -s said ]]; then sed 's/^/  | /' said >&2; fi
  exit 1
}

# The same text everywhere: bash's numbers depend on the seed alone.
make_words() {
  local words=(an age ago bee big bread dear edge fire go) i
  RANDOM=$1
  for ((i = 0; i < $2; i++)); do
    printf '%s' "${words[RANDOM % 10]}"
    if ((RANDOM % 8 == 0)); then printf '\n'; else printf ' '; fi
  done
}
make_words 1 3000 >text
"$program" prepare --text text --out characters >said 2>&1 || fail "a text is prepared"
for split in train:12 valid:5 test:5; do
  for ((article = 0; article < ${split#*:}; article++)); do
    printf '<doc id="%d">\n' "$article"
    make_words $((article + 7)) 60
    printf '\n</doc>\n'
  done >"${split%:*}.articles"
done
"$program" prepare --kind word --articles --format doc --pretokenized --train train.articles --valid valid.articles \
  --test test.articles --out articles >said 2>&1 || fail "articles are prepared"

make_words 2 3000 >other.text
"$program" prepare --text other.text --out other >said 2>&1 || fail "another text is prepared"

# Tiny models of each family. In four pieces, so that 1, 2 and 4 ranks have the same numbers.
schedule='[schedule]
rate = 0.01
steps = 12
[training]
batch = 8
block = 20
split = 4
validate_every = 4
validate_blocks = 2
report_every = 4
checkpoint_every = 5
seed = 11'
model='[model]
layers = 2
width = 16
heads = 2'
adam='[optimizer]
kind = "adam"
clip = 0.5'
printf '%s\n' "$model" slots=5 max_span=48 ramp=8 dropout=0.2 "$adam" "$schedule" >all_attention.toml
printf '%s\n' "$model" 'family = "transformer_xl"' inner=24 memory=24 dropout=0.1 "$adam" "$schedule" >transformer_xl.toml
printf '%s\n' "$model" 'family = "product_key"' position_rows=24 '[product_key]' 'layers = [2]' subkeys=12 heads=2 \
  selected=3 query_width=8 "$adam" "$schedule" >product_key.toml
printf '%s\n' '[model]' 'family = "recurrent"' embedding_width=8 width=24 "$adam" "$schedule" >recurrent.toml

# train RANKS OUT OPTION...: its words are in the file `said`.
train() {
  local ranks=$1 out=$2
  shift 2
  mpirun -n "$ranks" "$program" train --out "$out" "$@" >said 2>&1
}
# The numbers of a run's log, without times and what is of the machine.
numbers() {
  grep -E '"event":"(train|valid_short)"' "$1/metrics.jsonl" |
    sed -E 's/"(time|seconds|tokens_per_second)":("[^"]*"|[-+0-9.e]+),?//g'
}
same_run() {
  local file
  for file in checkpoint/model.safetensors best/model.safetensors config.toml; do
    cmp "$1/$file" "$2/$file" || fail "$2/$file must be that of $1"
  done
  if [[ $(numbers "$1") != "$(numbers "$2")" ]]; then
    diff <(numbers "$1") <(numbers "$2") | head -n 4 >&2
    fail "the numbers of $2 must be those of $1"
  fi
}

# is_there PROCESS: it runs; one that has ended may wait for mpirun to take note.
is_there() {
  kill -0 "$1" 2>/dev/null && ! grep -q '^State:.*zombie' "/proc/$1/status" 2>/dev/null
}

echo "== every family on 1, 2 and 4 ranks"
for family in all_attention transformer_xl product_key recurrent; do
  data=characters
  if [[ $family == recurrent ]]; then data=articles; fi
  for ranks in 1 2 4; do
    train "$ranks" "$family-$ranks" --config "$family.toml" --data "$data" || fail "$family on $ranks ranks"
    if ((ranks > 1)); then same_run "$family-1" "$family-$ranks"; fi
  done
  if [[ $(grep -c 'done after 12 steps' said) != 1 ]]; then fail "one rank speaks"; fi
done

echo "== evaluations by 2, 3 and 4 ranks"
# told RANKS OPTION...: what is printed, without the speed; the losses of all tokens go to losses.npy.
told() {
  local ranks=$1
  shift
  mpirun -n "$ranks" "$program" evaluate "$@" --json --per-token losses.npy 2>said |
    sed -E 's/"tokens_per_second":[-+0-9.e]+,?//'
}
# same_evaluation RANKS OPTION...: RANKS are numbers of them.
same_evaluation() {
  local one ranks several=$1
  shift
  one=$(told 1 "$@") || fail "evaluate $* by one"
  mv losses.npy losses-1.npy
  for ranks in $several; do
    if [[ $(told "$ranks" "$@") != "$one" ]]; then fail "$ranks ranks must say what one does: evaluate $*"; fi
    cmp losses-1.npy losses.npy || fail "the losses of $ranks ranks must be those of one: evaluate $*"
  done
}
same_evaluation '2 3 4' all_attention-1 --data characters --split train --block 64
same_evaluation 3 product_key-1 --data characters --split train --window 24 --apart
same_evaluation 4 recurrent-1 --data articles --split train --block 100 --cache 20
same_evaluation 2 transformer_xl-1 --data characters --exact
grep -q 'more ranks than 1 make that no faster' said || fail "a single stream must be told"

echo "== from four ranks to one and to two"
# Without a decay and a warm-up the first steps are those of a longer run.
parts=(--config all_attention.toml --data characters --set schedule.warmup=0 schedule.decay=none)
train 1 whole "${parts[@]}" || fail "the whole run"
# A configuration without a split, which four ranks raise to four, as fewer of them keep it.
grep -v '^split' all_attention.toml >no_split.toml
parts[1]=no_split.toml
train 4 parts "${parts[@]}" --steps 4 || fail "the first four steps"
train 1 parts "${parts[@]}" --steps 8 --resume || fail "resumed on one rank"
train 2 parts "${parts[@]}" --resume || fail "resumed on two ranks"
cmp whole/checkpoint/model.safetensors parts/checkpoint/model.safetensors || fail "parts must be the whole"

echo "== stopped by a signal to mpirun, and gone on with"
long=(--config all_attention.toml --data characters --steps 400 --set schedule.warmup=0 training.checkpoint_every=20
  training.validate_every=400 training.report_every=100)
train 1 undisturbed "${long[@]}" || fail "the undisturbed run"
# start RANKS OUT: sets `launcher`, and returns when there is a checkpoint.
start() {
  mpirun -n "$1" "$program" train --out "$2" "${long[@]}" "${@:3}" >said 2>&1 &
  launcher=$!
  local tries
  for ((tries = 0; tries < 600; tries++)); do
    if [[ -s $2/checkpoint/model.safetensors ]]; then return 0; fi
    if ! kill -0 "$launcher" 2>/dev/null; then fail "ended before its first checkpoint"; fi
    sleep 0.05
  done
  fail "no checkpoint after 30 s"
}
for signal in USR1 TERM INT; do
  rm -rf stopped
  start 3 stopped --set training.batch=12 training.split=3
  kill -"$signal" "$launcher"
  code=0
  wait "$launcher" || code=$?
  if ((code == 0)); then fail "$signal must stop the run"; fi
  if [[ $signal == USR1 ]] && ! grep -q 'interrupted at step .*, saved; --resume' said; then fail "$signal must save"; fi
  if grep -q 'engram: error' said; then fail "$signal is no error"; fi
done
train 3 stopped "${long[@]}" --set training.batch=12 training.split=3 --resume || fail "resumed after a signal"
train 1 three "${long[@]}" --set training.batch=12 training.split=3 || fail "one rank with three pieces"
cmp three/checkpoint/model.safetensors stopped/checkpoint/model.safetensors || fail "stopped must be undisturbed"

echo "== $kills runs that lose a rank"
RANDOM=$((kills + 5))
for ((kill = 1; kill <= kills; kill++)); do
  rm -rf killed
  start 4 "$folder/killed"
  sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
  mapfile -t pids < <(pgrep -f "^$program train --out $folder/killed")
  if ((${#pids[@]} == 4)); then
    # `ps -C engram` and `killall engram` find it.
    if ((kill == 1)) && [[ $(<"/proc/${pids[0]}/comm") != engram ]]; then fail "the process must be named engram"; fi
    kill -KILL "${pids[RANDOM % 4]}"
    began=$SECONDS
    code=0
    wait "$launcher" || code=$?
    if ((code == 0)); then fail "a killed rank must fail the run"; fi
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
  else
    wait "$launcher" || fail "it had ended"
  fi
  resumed=$((1 << RANDOM % 3))
  train "$resumed" killed "${long[@]}" --resume || fail "resumed on $resumed ranks after a kill"
  cmp undisturbed/checkpoint/model.safetensors killed/checkpoint/model.safetensors || fail "kill $kill left its mark"
done

echo "== a rank is killed that validates after every step"
rm -rf killed
start 4 "$folder/killed" --set training.checkpoint_every=1 training.validate_every=1 training.validate_blocks=100000
mapfile -t pids < <(pgrep -f "^$program train --out $folder/killed")
kill -KILL "${pids[RANDOM % 4]}"
code=0
wait "$launcher" || code=$?
if ((code == 0)); then fail "a killed rank must fail the run"; fi
train 4 killed "${long[@]}" --resume || fail "resumed after a kill between validations"

if ((kills > 10)); then
  echo "== a rank that hangs, and one that dies while mpirun has patience"
  # ended_by SECONDS SIGNAL WORDS: sends it to a rank, after which the ranks must go with these words.
  ended_by() {
    mapfile -t pids < <(pgrep -f "^$program train --out $folder/lost")
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
  export OMPI_MCA_odls_base_sigkill_timeout=10
  lost=(--set training.batch=12 training.split=3)
  ENGRAM_RANK_TIMEOUT=3 start 3 "$folder/lost" "${lost[@]}"
  ended_by 40 STOP 'must answer within 3 s, got no answer'
  rm -rf lost
  start 3 "$folder/lost" "${lost[@]}"
  ended_by 40 KILL 'which has gone without a word'
  # What it missed comes when it goes on: gradients too long to be kept elsewhere, into memory that must still be there.
  make_wide=(--set model.width=768 model.layers=4 training.split=2 training.checkpoint_every=1)
  rm -rf lost
  ENGRAM_RANK_TIMEOUT=2 start 2 "$folder/lost" "${make_wide[@]}"
  mapfile -t pids < <(pgrep -f "^$program train --out $folder/lost")
  kill -STOP "${pids[1]}"
  sleep 4
  kill -CONT "${pids[1]}"
  code=0
  wait "$launcher" || code=$?
  if ((code != 1)); then fail "a rank that was away must end the run with 1, got $code"; fi
  if grep -q 'signal 11\|Segmentation' said; then fail "memory of what is on its way must stay"; fi
  unset OMPI_MCA_odls_base_sigkill_timeout
fi

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
of_run=(evaluate all_attention-1 --data characters)
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
refused 'batch must be a multiple of 6' 2 -n 3 "$program" "${common[@]}"
if [[ -e refused ]]; then fail "a refused run leaves no folder"; fi

echo "== numbers that no checkpoint may have, and a failure of rank 0 alone"
refused 'every number must be finite and at most 1e+06' 1 -n 2 "$program" train --out diverged "${common[@]:3}" \
  --set schedule.rate=1e7 schedule.warmup=0 training.checkpoint_every=1
grep -q 'there was no checkpoint yet; a smaller schedule.rate' said || fail "it has diverged"
mkdir full
ln -s /dev/full full/metrics.jsonl
began=$SECONDS
refused 'No space left on device' 1 -n 3 "$program" train --out full "${common[@]:3}" --set training.batch=12 training.split=3
if ((SECONDS - began > 6)); then fail "the others must go soon, got $((SECONDS - began)) s"; fi

echo "== a full disk on rank 0"
mkdir small
if mount -t tmpfs -o size=96k none small 2>/dev/null; then
  mounted=$folder/small
  refused 'small/run' 1 -n 2 "$program" train --out small/run "${long[@]}" --set model.width=64
  umount "$mounted"
  mounted=""
else
  echo "   left out: it may not mount a small file system"
fi

echo "== a sweep over ranks"
sweep=(sweep --config all_attention.toml --data characters --vary model.slots=2,3,4)
"$program" "${sweep[@]}" --out alone >said 2>&1 || fail "a sweep alone"
mpirun -n 2 "$program" "${sweep[@]}" --out dealt >said 2>&1 || fail "a sweep over two ranks"
for slots in 2 3 4; do
  cmp "alone/slots-$slots/checkpoint/model.safetensors" "dealt/slots-$slots/checkpoint/model.safetensors" ||
    fail "the variants must be those of one rank"
done
if [[ $(cut -d, -f1,5,6 alone/sweep.csv) != "$(cut -d, -f1,5,6 dealt/sweep.csv)" ]]; then fail "the tables must agree"; fi
echo "All of it held."
