#!/usr/bin/env bash
# Fuzzing: libFuzzer (Clang) feeds every reader of what others wrote, under AddressSanitizer and
# UndefinedBehaviorSanitizer.
#   bash tests/fuzz/run.sh MINUTES [READER ...]     all readers, or these; MINUTES are shared out alike
# It builds the preset `fuzz`, begins with tests/fuzz/corpus, and ends with a table. What readers did not refuse well is
# in build/fuzz/found/READER: a file for each, and a line that reads it again is printed. Exit code 1: something was found.
#   ENGRAM_FUZZ_JOBS=2         readers side by side [1]
#   ENGRAM_FUZZ_KEEP=FOLDER    where the grown corpora are kept, and gone on with the next time [build/fuzz/grown]
#   ENGRAM_FUZZ_GROW=1         what reaches more code goes into tests/fuzz/corpus, files of up to 2048 bytes
# An input may take 10 seconds, 64 MB in one piece, and at once 8 MiB and 256 bytes for each of its own (fuzz_main.cpp);
# the process 1.5 GB.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"
if [[ ! ${1:-} =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
  echo "tests/fuzz/run.sh: the first argument must be a number of minutes, got '${1:-}'" >&2
  exit 2
fi
minutes=$1
shift
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
kept=${ENGRAM_FUZZ_KEEP:-build/fuzz/grown}
found=build/fuzz/found
logs=build/fuzz/logs
seconds=$(awk -v m="$minutes" -v j="$jobs" -v n="${#readers[@]}" 'BEGIN { s = int(m * 60 * j / n); print s < 1 ? 1 : s }')
mkdir -p -- "$kept" "$found" "$logs"
# Files that readers get are in memory where the system has such a place.
scratch=$(mktemp -d "$([[ -w /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/engram-fuzz.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
export ENGRAM_FUZZ_SCRATCH=$scratch OMP_NUM_THREADS=1
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0:detect_stack_use_after_return=0:quarantine_size_mb=16
export UBSAN_OPTIONS=print_stacktrace=1

fuzz() {
  local reader=$1 longest
  longest=$(awk -v r="$reader" '$1 == r { print $2 }' <<<"$listed")
  mkdir -p -- "$kept/$reader" "$found/$reader"
  # Messages of readers go to stdout and stderr of the program: they would be most of the log.
  ENGRAM_FUZZ_READER=$reader nice -n 5 "$program" -max_total_time="$seconds" -max_len="$longest" -timeout=10 \
    -rss_limit_mb=1536 -malloc_limit_mb=64 -print_final_stats=1 -report_slow_units=5 -artifact_prefix="$found/$reader/" \
    "$kept/$reader" "tests/fuzz/corpus/$reader" >/dev/null 2>"$logs/$reader" </dev/null || true
}
running=0
for reader in "${readers[@]}"; do
  fuzz "$reader" &
  if (((running += 1) >= jobs)); then
    wait -n
    running=$((running - 1))
  fi
done
wait

# number NAME FILE: libFuzzer's last word on it.
number() { sed -nE "s/^stat::$1: *([0-9]+).*/\1/p" "$2" | tail -n 1; }
printf '\n%-16s %12s %7s %7s %8s %8s  %s\n' reader inputs edges corpus seconds MB findings
all=0
findings=0
for reader in "${readers[@]}"; do
  log=$logs/$reader
  inputs=$(number number_of_executed_units "$log")
  edges=$(sed -nE 's/.*cov: ([0-9]+) .*/\1/p' "$log" | tail -n 1)
  took=$(sed -nE 's/^Done [0-9]+ runs in ([0-9]+) second.*/\1/p' "$log" | tail -n 1)
  files=$(find "$found/$reader" -type f -newer "$scratch" | wc -l)
  printf '%-16s %12s %7s %7s %8s %8s  %s\n' "$reader" "${inputs:-0}" "${edges:-0}" \
    "$(find "$kept/$reader" "tests/fuzz/corpus/$reader" -type f | wc -l)" "${took:-stopped}" \
    "$(number peak_rss_mb "$log")" "$files"
  all=$((all + ${inputs:-0}))
  findings=$((findings + files))
done
printf '%s inputs in all, %s findings\n' "$all" "$findings"
for reader in "${readers[@]}"; do
  find "$found/$reader" -type f -newer "$scratch" -printf "ENGRAM_FUZZ_READER=$reader $program %p\n"
done
if [[ ${ENGRAM_FUZZ_GROW:-0} == 1 ]]; then
  for reader in "${readers[@]}"; do
    ENGRAM_FUZZ_READER=$reader "$program" -merge=1 -max_len=2048 -timeout=10 "tests/fuzz/corpus/$reader" "$kept/$reader" \
      >/dev/null 2>"$logs/$reader.merge" </dev/null || true
  done
  du -sb tests/fuzz/corpus
fi
((findings == 0))
