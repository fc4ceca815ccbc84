#!/usr/bin/env bash
# Builds with sanitizers and runs the tests labelled fast:
#   bash tests/sanitized.sh asan|tsan [TEST ...]        for instance: bash tests/sanitized.sh tsan core ops
# asan is AddressSanitizer with UndefinedBehaviorSanitizer, tsan is ThreadSanitizer. Without names, all tests.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
preset=${1:-}
if [[ $preset != asan && $preset != tsan ]]; then
  echo "tests/sanitized.sh: the first argument must be asan or tsan, got '$preset'" >&2
  exit 2
fi
shift

# Warnings are not errors here: instrumented code makes GCC see some that are none.
targets=()
for name in "$@"; do targets+=(--target "engram_tests_$name"); done
cmake --preset "$preset"
cmake --build "build/$preset" --parallel "$(nproc)" "${targets[@]}"

export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
export ASAN_OPTIONS=halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# libgomp and oneDNN are not instrumented: what they call is not to be judged.
export TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1
starter=()
# GCC 12's ThreadSanitizer gives up when the kernel randomises addresses by more bits than it expects.
if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then starter=(setarch -R); fi
names="$*"
"${starter[@]}" ctest --test-dir "build/$preset" --parallel 2 --output-on-failure --no-tests=error -L fast \
  -R "^(${names// /|})"
