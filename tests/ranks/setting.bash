# For tests/ranks.sh: a folder with texts and configurations, and what its parts share. Knows `program` and `by_night`.

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
printf '%s\n' "$model" 'family = "product_key"' position_rows=64 '[product_key]' 'layers = [2]' subkeys=12 heads=2 \
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
# ranks_of OUT: sets `pids` to the processes that train there.
ranks_of() { mapfile -t pids < <(pgrep -f "^$program train .*--out $folder/$1( |\$)"); }

# A run without an end, which can be stopped at any moment. Without a decay and a warm-up its first steps are those of
# shorter runs; so it is gone on with to a step `goal`, and compared with a run that came there undisturbed.
endless=(--config all_attention.toml --data characters --set schedule.warmup=0 schedule.decay=none
  training.checkpoint_every=20 training.validate_every=100000 training.report_every=100)
# start RANKS OUT OPTION...: sets `launcher`, and returns when there is a checkpoint.
start() {
  mpirun -n "$1" "$program" train --out "$folder/$2" "${endless[@]}" "${@:3}" --steps 100000 >said 2>&1 &
  launcher=$!
  first_checkpoint "$2"
}
# first_checkpoint OUT: waits for it, as long as there is the process `launcher`.
first_checkpoint() {
  local tries
  for ((tries = 0; tries < 600; tries++)); do
    if [[ -s $1/checkpoint/model.safetensors ]]; then return 0; fi
    if ! kill -0 "$launcher" 2>/dev/null; then fail "ended before its first checkpoint"; fi
    sleep 0.05
  done
  fail "no checkpoint after 30 s"
}
# step_of OUT: that of its checkpoint.
step_of() { grep -a -o -m 1 '"engram.step":"[0-9]*"' "$1/checkpoint/model.safetensors" | tr -dc 0-9; }
# set_goal OUT: the next hundred of steps after its checkpoint.
set_goal() { goal=$((($(step_of "$1") / 100 + 1) * 100)); }
# undisturbed OPTION...: sets `whole`, a run of these to the goal, of one process, which is made once.
undisturbed() {
  local options="$*"
  whole=undisturbed-$goal-${options//[^a-z0-9=]/_}
  if [[ -e $whole ]]; then return 0; fi
  "$program" train --out "$whole" "${endless[@]}" "$@" --steps "$goal" >said 2>&1 || fail "the undisturbed run"
}
# same_end OUT WORDS: what was gone on with to the goal is what came there undisturbed.
same_end() {
  cmp "$whole/checkpoint/model.safetensors" "$1/checkpoint/model.safetensors" || fail "$2"
}
