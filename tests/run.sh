#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test and ends with the minutes of processor time by part.
#   bash tests/run.sh [CTEST_OPTION ...]        for instance: bash tests/run.sh -R attention
# With options only ctest's tests run; without, also the op tests of a portable build without oneDNN, with its plain
# kernels, and the time is held against a budget.
# ENGRAM_PRESET=werror (release by default) names another preset of CMakePresets.json to build and test. What takes too
# long for every day is in tests/nightly.sh.
set -euo pipefail

# Minutes of processor time (tests/parts.sh); a new test pays for its time by another getting quicker.
budget=32

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
preset=${ENGRAM_PRESET:-release}
jobs=$(nproc)
source tests/parts.sh

begin_part "Packages"
bash apps/install_packages.sh
compare_machine

begin_part "Building (preset $preset)"
cmake --preset "$preset"
cmake --build "build/$preset" --parallel "$jobs"

# libgomp's waiting threads otherwise spin on the cores that the other test is using.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

if (($# == 0)); then
  begin_part "Building ops, portable, without oneDNN (preset without-onednn)"
  warnings=OFF
  if [[ $preset == werror ]]; then warnings=ON; fi
  # Its plain kernels; every night builds the modules for newer processors too.
  cmake --preset without-onednn -DENGRAM_WERROR="$warnings" -DENGRAM_CPU_LEVELS=
  cmake --build build/without-onednn --parallel "$jobs" --target engram_tests_ops
  program=$(find build/without-onednn -type f -name engram_tests_ops -perm -u+x -print -quit)
  if [[ -z $program ]]; then
    echo "tests/run.sh: build/without-onednn must hold the program engram_tests_ops, found none" >&2
    exit 1
  fi
  newer=$(objdump -d "$program" | awk '/%[yz]mm/ { lines++ } END { print lines + 0 }')
  if [[ $(uname -m) == x86_64 ]] && ((newer > 0)); then
    echo "tests/run.sh: $program must run on any x86-64 machine, got $newer lines of AVX instructions in it" >&2
    exit 1
  fi
  begin_part "Testing ops, portable, without oneDNN"
  ENGRAM_CPU=baseline "$program"
fi

begin_part "Testing (preset $preset)"
# Exercises (tests/exercises) are there where somebody learns, and fail until they are solved.
ctest --test-dir "build/$preset" --parallel 2 --output-on-failure --label-exclude "nightly|exercise" "$@"

if (($# == 0)); then
  printf '\nThe ten slowest tests, in seconds:\n'
  grep -hE '^ *[0-9]+\.[0-9]+ s: ' "build/$preset/Testing/Temporary/LastTest.log" |
    sort -rn | uniq | awk 'NR <= 10'
  end_parts "$budget"
else
  end_parts 0
fi
