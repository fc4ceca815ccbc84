#!/usr/bin/env bash
# Builds with sanitizers and runs tests:
#   bash tests/sanitized.sh asan|tsan              what .ci/run checks of them every day
#   bash tests/sanitized.sh asan|tsan all          every test, and what the tests themselves do
#   bash tests/sanitized.sh asan|tsan TEST ...     those of some programs, for instance: tsan core ops; tsan apps_ranks is
#                                                  whole runs of ranks that are threads
# ENGRAM_TEST_OBJECTS=build/werror/tests in the environment links the tests' objects of that build, of the same sources,
# in the place of compiling them; not with `all`.
# asan is AddressSanitizer with UndefinedBehaviorSanitizer; its day is the tests labelled fast. tsan is ThreadSanitizer:
# threads live in kernels alone, so its day is the tests of kernels, and of ranks that are threads: buffers on their way,
# gradients, updates and files. Of the op table both watch the check that runs every
# kernel in every case, on two threads and in f64; its other checks run the same kernels once more.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
preset=${1:-}
if [[ $preset != asan && $preset != tsan ]]; then
  echo "tests/sanitized.sh: the first argument must be asan or tsan, got '$preset'" >&2
  exit 2
fi
shift
source tests/parts.sh

targets=()
tests=(-L fast)
configure=(-DENGRAM_SANITIZE_TESTS=OFF "-DENGRAM_TEST_OBJECTS=${ENGRAM_TEST_OBJECTS:-}")
case "$preset ${*:-day}" in
  "asan day") ;;
  "tsan day")
    targets=(--target engram_tests_ops --target engram_tests_core --target engram_tests_nn)
    tests=(-R '^(ops_watched|core_ranks|nn_ranks)$')
    ;;
  *" all")
    tests=(-LE nightly)
    configure=(-DENGRAM_SANITIZE_TESTS=ON -DENGRAM_TEST_OBJECTS=)
    # Kernels of the simulated device under AddressSanitizer, in every case of the op table. ThreadSanitizer would watch as
    # many threads as a grid has: tests/simulated/programs.cmake has what it must see.
    if [[ $preset == asan ]]; then configure+=(-DENGRAM_SIMULATED=ON); fi
    ;;
  *)
    names="$*"
    for name in "$@"; do targets+=(--target "engram_tests_${name%_ranks}"); done
    tests=(-R "^(${names// /|})$")
    ;;
esac

# Warnings are not errors here: instrumented code makes GCC see some that are none.
begin_part "Building with sanitizers (preset $preset)"
cmake --preset "$preset" "${configure[@]}"
cmake --build "build/$preset" --parallel "$(nproc)" "${targets[@]}"

export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
# Asked for more memory than there is, it answers as the system does: some tests ask.
export ASAN_OPTIONS=halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# libgomp and oneDNN are not instrumented: what they call is not to be judged.
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:ignore_noninstrumented_modules=1
starter=()
# GCC 12's ThreadSanitizer gives up when the kernel randomises addresses by more bits than it expects.
if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then starter=(setarch -R); fi
begin_part "Testing with sanitizers (preset $preset)"
"${starter[@]}" ctest --test-dir "build/$preset" --parallel 2 --output-on-failure --no-tests=error "${tests[@]}"
end_parts 0
