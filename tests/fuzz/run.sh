#!/usr/bin/env bash
# Fuzzing: libFuzzer (Clang) feeds every reader of what others wrote, under AddressSanitizer and
# UndefinedBehaviorSanitizer.
#   bash tests/fuzz/run.sh MINUTES [READER ...]     all readers, or these; MINUTES are shared out alike
#   bash tests/fuzz/run.sh --table [READER ...]     what all runs that are kept came to, as a table for a page
# It builds the preset `fuzz`, begins with tests/fuzz/corpus, and ends with a table. What readers did not refuse well is
# in build/fuzz/found/READER: a file for each, and a line that reads it again is printed. Exit code 1: something was found.
#   ENGRAM_FUZZ_INPUTS=N       inputs are shared out alike, not time: who has had N, all kept runs together, gets no more;
#                              MINUTES are the limit for all
#   ENGRAM_FUZZ_JOBS=2         readers side by side [1]
#   ENGRAM_FUZZ_KEEP=FOLDER    where the grown corpora are kept, and gone on with the next time, and the figures of every
#                              run, in figures.tsv [build/fuzz/grown]
#   ENGRAM_FUZZ_GROW=1         what reaches more code goes into tests/fuzz/corpus, files of up to 2048 bytes
# An input may take 10 seconds, 64 MB in one piece, and at once 8 MiB and 256 bytes for each of its own (fuzz_main.cpp);
# the process 1.5 GB. Readers take turns of a minute; who shows a fault gets no further turn.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"
kept=${ENGRAM_FUZZ_KEEP:-build/fuzz/grown}
figures=$kept/figures.tsv

# table LINE [READER ...]: the figures from a line of the file on, added up by reader, as rows of a page.
table() {
  local from=$1 reader
  shift
  if [[ ! -f $figures ]]; then
    echo "tests/fuzz/run.sh: figures must be in '$figures', got no such file; a run makes it" >&2
    return 1
  fi
  for reader in tests/fuzz/corpus/*/; do
    reader=$(basename -- "$reader")
    printf 'corpus\t%s\t%s\n' "$reader" "$(find "tests/fuzz/corpus/$reader" -type f | wc -l)"
  done | awk -F'\t' -v from="$from" -v only=" $* " -f tests/fuzz/table.awk - "$figures"
}

if [[ ${1:-} == --table ]]; then
  shift
  table 1 "$@"
  exit
fi
if [[ ! ${1:-} =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
  echo "tests/fuzz/run.sh: the first argument must be a number of minutes, or --table, got '${1:-}'" >&2
  exit 2
fi
minutes=$1
shift
most=${ENGRAM_FUZZ_INPUTS:-0}
if [[ ! $most =~ ^[0-9]+$ ]]; then
  echo "tests/fuzz/run.sh: ENGRAM_FUZZ_INPUTS must be a number of inputs, got '$most'" >&2
  exit 2
fi
if [[ ! -x $(command -v clang++) ]]; then
  echo "tests/fuzz/run.sh: there must be Clang, for libFuzzer; this installs it:" >&2
  echo "  bash apps/install_packages.sh clang libclang-rt-dev libomp-dev" >&2
  exit 1
fi
if [[ -z ${ENGRAM_FUZZ_PROGRAM:-} ]]; then
  cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz --parallel "$(nproc)"
fi
program=$(realpath -- "${ENGRAM_FUZZ_PROGRAM:-build/fuzz/tests/fuzz/engram_fuzz}")
listed=$(env -u ENGRAM_FUZZ_READER "$program" 2>/dev/null)
readers=("$@")
if ((${#readers[@]} == 0)); then mapfile -t readers < <(cut -d' ' -f1 <<<"$listed"); fi
for reader in "${readers[@]}"; do
  if ! grep -q "^$reader " <<<"$listed"; then
    printf "tests/fuzz/run.sh: a reader must be one of these, got '%s'\n%s\n" "$reader" "$listed" >&2
    exit 2
  fi
done
jobs=${ENGRAM_FUZZ_JOBS:-1}
found=build/fuzz/found
logs=build/fuzz/logs
mkdir -p -- "$kept" "$found" "$logs"
touch -- "$figures"
first=$(($(wc -l <"$figures") + 1))
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
# Files that readers get are in memory where the system has such a place.
scratch=$(mktemp -d "$([[ -w /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/engram-fuzz.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
export ENGRAM_FUZZ_SCRATCH=$scratch OMP_NUM_THREADS=1
# Of an allocation the caller alone is kept: whole stacks take 6 to 8 percent of the time, and the line that reads a finding
# again has them.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0:detect_stack_use_after_return=0:quarantine_size_mb=16
ASAN_OPTIONS+=:malloc_context_size=1
export UBSAN_OPTIONS=print_stacktrace=1
TIMEFORMAT='%U %S'

# number NAME FILE: libFuzzer's last word on it.
number() { sed -nE "s/^stat::$1: *([0-9]+).*/\1/p" "$2" | tail -n 1; }
# had READER: its inputs in all kept runs.
had() { awk -F'\t' -v r="$1" '$3 == r { n += $4 } END { printf "%d\n", n }' "$figures"; }
# findings READER: files that it left in this run.
findings() { find "$found/$1" -type f -newer "$scratch"; }

# fuzz READER SECONDS INPUTS: one turn, with its line of figures. INPUTS: no more than these; -1: as many as there is time.
fuzz() {
  local reader=$1 seconds=$2 inputs=$3 log=$logs/$1 longest began=$SECONDS
  longest=$(awk -v r="$reader" '$1 == r { print $2 }' <<<"$listed")
  # Messages of readers go to stdout and stderr of the program: they would be most of the log. Weights by rare features
  # (-entropic) take up to a third of the time of the longest inputs, and the folders are read once (-reload). A report of
  # a sanitizer that the time limit interrupts may hang, so there is an end to a turn as well.
  {
    time ENGRAM_FUZZ_READER=$reader nice -n 5 timeout --kill-after=10 $((seconds + 300)) "$program" \
      -max_total_time="$seconds" -runs="$inputs" -max_len="$longest" -timeout=10 -rss_limit_mb=1536 \
      -malloc_limit_mb=64 -print_final_stats=1 -report_slow_units=5 -reload=0 -entropic=0 \
      -artifact_prefix="$found/$reader/" "$kept/$reader" "tests/fuzz/corpus/$reader" >/dev/null 2>"$log" </dev/null || true
  } 2>"$scratch/$reader.time"
  printf '%s\t%s\t%s\t%d\t%d\t%d\t%s\t%d\t%d\n' "$(date -u +%FT%TZ)" "$commit" "$reader" \
    "$(number number_of_executed_units "$log")" "$(sed -nE 's/.*cov: ([0-9]+) .*/\1/p' "$log" | tail -n 1)" \
    "$(number peak_rss_mb "$log")" "$(awk '{ print $1 + $2 }' "$scratch/$reader.time")" $((SECONDS - began)) \
    "$(findings "$reader" | wc -l)" >>"$figures"
}

share=$(awk -v m="$minutes" -v j="$jobs" -v n="${#readers[@]}" 'BEGIN { s = int(m * 60 * j / n); print s < 1 ? 1 : s }')
turns=$(((share + 59) / 60))
turn=$((share / turns))
end=$((SECONDS + $(awk -v m="$minutes" 'BEGIN { print int(m * 60) }')))
for reader in "${readers[@]}"; do mkdir -p -- "$kept/$reader" "$found/$reader"; done
is_over=0
while ((is_over == 0)); do
  is_over=1
  running=0
  for reader in "${readers[@]}"; do
    if [[ -n $(findings "$reader") ]]; then continue; fi
    inputs=-1
    if ((most > 0)); then
      inputs=$((most - $(had "$reader")))
      if ((inputs <= 0 || SECONDS >= end)); then continue; fi
    fi
    is_over=0
    fuzz "$reader" "$turn" "$inputs" &
    if (((running += 1) >= jobs)); then
      wait -n
      running=$((running - 1))
    fi
  done
  wait
  if ((most == 0 && (turns -= 1) == 0)); then is_over=1; fi
done

echo
table "$first" "${readers[@]}"
all=0
for reader in "${readers[@]}"; do
  while read -r file; do
    echo "ENGRAM_FUZZ_READER=$reader $program $file"
    all=$((all + 1))
  done < <(findings "$reader")
done
echo "$all findings"
if [[ ${ENGRAM_FUZZ_GROW:-0} == 1 ]]; then
  for reader in "${readers[@]}"; do
    ENGRAM_FUZZ_READER=$reader "$program" -merge=1 -max_len=2048 -timeout=10 "tests/fuzz/corpus/$reader" "$kept/$reader" \
      >/dev/null 2>"$logs/$reader.merge" </dev/null || true
  done
  du -sb tests/fuzz/corpus
fi
((all == 0))
