# Sourced by the scripts of the papers' studies: what they have in common. They take [SEEDS] [STEPS], go on where they
# stopped when they are given the same command again, and end with the paper's claims and a figure.
#   begin_study SCRIPT USUAL_SEEDS [SEEDS] [STEPS]   sets engram, runs, seeds and steps (of sweeps: options, perhaps none)
#   shuffled_chapters                                makes $runs/kjv-chapters.txt
#   judge SWEEP_DIR CLAIM...                         says which claims hold
# Of the environment:
#   STRICT=1          the script ends with an error unless all claims hold
#   RUNS=FOLDER       where texts, data and runs are (runs)
#   ENGRAM=PROGRAM    this program; else build/program is brought up to date and taken

begin_study() {
  local script=apps/configs/$1
  local usual=$2
  shift 2
  if (($# > 2)) || ! [[ ${1:-$usual} =~ ^[0-9]+(,[0-9]+)*$ && ${2:-1} =~ ^[1-9][0-9]*$ ]]; then
    echo "$script: arguments must be [SEEDS] [STEPS], as 1,2 and 500, got: $*" >&2
    exit 2
  fi
  seeds=${1:-$usual}
  steps=()
  if (($# > 1)); then
    steps=(--set "schedule.steps=$2" --set "training.checkpoint_every=$2" --set "training.validate_every=$2")
    # So few are a trial; the configurations warm up for longer.
    if (($2 < 200)); then steps+=(--set schedule.warmup=0); fi
  fi
  runs=${RUNS:-runs}
  if [[ ! -s $runs/kjv.txt ]]; then
    echo "$script: '$runs/kjv.txt' must be there, got nothing" >&2
    echo "  bash apps/quickstart.sh makes it in runs" >&2
    exit 1
  fi
  engram=${ENGRAM:-}
  if [[ -z $engram ]]; then
    cmake --preset program --log-level=WARNING >/dev/null
    cmake --build build/program --target engram --parallel "$(nproc)"
    engram=build/program/apps/engram
  fi
}

# Chapters in random order, always the same one, so that the held-out text is of the same kind as the rest.
shuffled_chapters() {
  if [[ -s $runs/kjv-chapters.txt ]]; then return; fi
  awk '{ split($1, place, ":"); if (place[1] != last) { chapter++; last = place[1] } print chapter "\t" $0 }' \
    "$runs/kjv.txt" >"$runs/kjv-numbered.txt"
  cut -f1 "$runs/kjv-numbered.txt" | uniq | shuf --random-source="$runs/kjv.txt" |
    awk -F'\t' 'NR == FNR { text[$1] = text[$1] $2 "\n"; next } { printf "%s", text[$1] }' "$runs/kjv-numbered.txt" - \
      >"$runs/kjv-chapters.part"
  mv -- "$runs/kjv-chapters.part" "$runs/kjv-chapters.txt"
}

judge() {
  local sweep=$1
  shift
  local strict=()
  if [[ ${STRICT:-0} == 1 ]]; then strict=(--strict); fi
  "$engram" orderings "$sweep" "${strict[@]}" "${@/#/--claim=}"
}
