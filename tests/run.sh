#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test and ends with ctest's own closing line.
#   bash tests/run.sh [CTEST_OPTION ...]        for instance: bash tests/run.sh -R attention
# With options only ctest's tests run; without, also the op tests of a portable build whose products are Eigen's, with its
# plain kernels and with the best that this machine can run.
# ENGRAM_PRESET=werror (release by default) names another preset of CMakePresets.json to build and test.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
preset=${ENGRAM_PRESET:-release}
jobs=$(nproc)

heading() { printf '\n== %s (after %d s)\n' "$1" "$SECONDS"; }

heading "Packages"
bash apps/install_packages.sh

heading "Building (preset $preset)"
cmake --preset "$preset"
cmake --build "build/$preset" --parallel "$jobs"

# libgomp's waiting threads otherwise spin on the cores that the other test is using.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

if (($# == 0)); then
  heading "Building and testing the ops of a portable build with Eigen's products (preset eigen)"
  warnings=OFF
  if [[ $preset == werror ]]; then warnings=ON; fi
  cmake --preset eigen -DENGRAM_WERROR="$warnings"
  cmake --build build/eigen --parallel "$jobs" --target engram_tests_ops
  program=$(find build/eigen -type f -name engram_tests_ops -perm -u+x -print -quit)
  if [[ -z $program ]]; then
    echo "tests/run.sh: build/eigen must hold the program engram_tests_ops, found none" >&2
    exit 1
  fi
  newer=$(objdump -d "$program" | awk '/%[yz]mm/ { lines++ } END { print lines + 0 }')
  if [[ $(uname -m) == x86_64 ]] && ((newer > 0)); then
    echo "tests/run.sh: $program must run on any x86-64 machine, got $newer lines of AVX instructions in it" >&2
    exit 1
  fi
  # Side by side: most of what they do has one thread.
  ENGRAM_CPU=baseline "$program" &
  plain=$!
  "$program"
  wait "$plain"
fi

heading "Testing (preset $preset)"
ctest --test-dir "build/$preset" --parallel 2 --output-on-failure "$@"
