#!/usr/bin/env bash
# Everything that only a card can tell, in one call on a machine with one: builds with nvcc, runs the op table and training
# on the card against the CPU, then `engram bench --device cuda` beside PyTorch models of the same equations, which prints
# one table, then several ranks, and compute-sanitizer. What tells most comes first, and every part has a time limit, so
# that one that hangs leaves the others their time.
#   bash tests/gpu/run.sh [RESULTS]       the folder for logs, compiler report and table [runs/gpu]
# Needs the CUDA Toolkit, CMake, a C++20 compiler, and Python with PyTorch for the last part. No package manager:
#   ENGRAM_HEADERS   a folder with the header-only dependencies where the system has none: Eigen, fmt, nlohmann_json,
#                    CLI11, toml++, Catch2 version 2 (bash tests/gpu/pack_headers.sh FOLDER makes one on a machine that
#                    has them)
#   ENGRAM_KERNELS   a folder of kernels that another machine has compiled (bash tests/gpu/pack_kernels.sh FOLDER); else
#                    nvcc compiles them here
#   ENGRAM_PYTHON    a Python with PyTorch [python3]
#   ENGRAM_GPU_PARTS which parts to run [build test bench ranks sanitize]; `ranks` needs NCCL's library and header, and
#                    with several cards MPI
#   ENGRAM_GPU_LIMIT the time limit of each part, in seconds [540]; building has twice as much
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"
results=${1:-runs/gpu}
python=${ENGRAM_PYTHON:-python3}
parts=${ENGRAM_GPU_PARTS:-build test bench ranks sanitize}
limit=${ENGRAM_GPU_LIMIT:-540}
if [[ ! $limit =~ ^[1-9][0-9]{0,5}$ ]]; then
  echo "tests/gpu/run.sh: ENGRAM_GPU_LIMIT must be a number of seconds from 1 to 999999, got '$limit'" >&2
  exit 2
fi
build=build/gpu
mkdir -p "$results"

# Within what is left of the part's time; 124: it was too long. What it has printed until then is kept.
part_end=0
begin_part() { part_end=$((SECONDS + limit)); }
limited() {
  local left=$((part_end - SECONDS))
  timeout --kill-after=10 "$((left > 1 ? left : 1))" "$@"
}
heading() { printf '\n== %s (after %d s)\n' "$1" "$SECONDS"; }
# What failed; the parts after it run all the same, since a card is rarely at hand.
failed=()
wants() { [[ " $parts " == *" $1 "* ]]; }

if wants build; then
  heading "Building with $(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/CUDA \1/p')"
  generator=()
  if command -v ninja >/dev/null; then generator=(-G Ninja); fi
  cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DENGRAM_CUDA=ON -DENGRAM_CUDA_RESOURCES=ON \
    -DENGRAM_SIMULATED=OFF ${ENGRAM_HEADERS:+-DENGRAM_HEADERS="$ENGRAM_HEADERS"} -DENGRAM_KERNELS="${ENGRAM_KERNELS:-}"
  # What nvcc reports of a kernel goes to the error stream.
  timeout --kill-after=10 "$((2 * limit))" cmake --build "$build" --parallel "$(nproc)" \
    --target engram engram_tests_ops engram_tests_apps 2>&1 |
    tee "$results/build.txt" | grep -v '^ptxas\|^ *[0-9]* bytes stack frame'
  heading "Registers, spills and shared memory of every kernel: $results/resources.txt"
  grep -E 'Compiling entry function|spill stores|Used [0-9]+ registers' "$results/build.txt" | c++filt \
    >"$results/resources.txt" || echo "nothing was compiled again"
  awk '/Used/ { kernels++ } /spill stores/ && !/ 0 bytes spill stores/ { spilling++ }
    END { printf "%d kernels, %d of them spill registers\n", kernels, spilling }' "$results/resources.txt"
fi

if [[ "$parts" != build ]] && ! nvidia-smi -L; then
  echo "tests/gpu/run.sh: this machine must have an NVIDIA card and its driver, nvidia-smi finds none" >&2
  exit 1
fi
export OMP_WAIT_POLICY=passive ENGRAM_TEST_DEVICE=cuda
if wants test; then
  heading "Kernels and training on the card"
  begin_part
  limited ctest --test-dir "$build" --output-on-failure -L gpu --no-tests=error | tee "$results/tests.txt" || failed+=(test)
  heading "Attention once more, without products by warpgroups"
  begin_part
  ENGRAM_CARD_PRODUCTS=warp limited "$build/tests/engram_tests_ops" "*attention*" | tee "$results/by-warps.txt" ||
    failed+=(by-warps)
fi

if wants bench; then
  heading "Bench, PyTorch beside it"
  begin_part
  limited "$python" tests/gpu/bench.py --engram "$build/apps/engram" --results "$results" || failed+=(bench)
  for form in warpgroup warp; do
    heading "The largest all-attention model, 16 streams, products with slots by $form"
    begin_part
    ENGRAM_CARD_PRODUCTS=$form limited "$build/apps/engram" bench --device cuda --dtype bf16 --spans 256 --steps 3 \
      --config all-attention/enwik8-all-attention-large --set training.split=1 training.batch=16 |
      tee "$results/products-by-$form.txt" || failed+=("products-by-$form")
  done
fi

if wants ranks; then
  heading "NCCL with one rank, and captured steps that are cut"
  begin_part
  limited "$build/tests/engram_tests_ops" "captured step*" | tee "$results/ranks.txt" || failed+=(ranks)
  cards=$(nvidia-smi -L | wc -l)
  if ((cards > 1)) && command -v mpirun >/dev/null; then
    heading "Training on two cards and on one: the same checkpoint"
    seq 1 50000 >"$results/numbers.txt"
    rm -rf "$results/numbers"
    limited "$build/apps/engram" prepare --text "$results/numbers.txt" --out "$results/numbers" >"$results/numbers-prepare.txt"
    small=(train --device cuda --config apps/configs/kjv/kjv-quick.toml --data "$results/numbers" --steps 30
      --set training.split=2)
    rm -rf "$results/one-card" "$results/two-cards"
    limited "$build/apps/engram" "${small[@]}" --out "$results/one-card" >"$results/one-card.txt" 2>&1 || failed+=(one-card)
    # Machines with cards are often containers, where all is done by root.
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NCCL_DEBUG=WARN \
      limited mpirun -n 2 "$build/apps/engram" "${small[@]}" --out "$results/two-cards" >"$results/two-cards.txt" 2>&1 ||
      failed+=(two-cards)
    for file in "$results"/one-card/checkpoint/*.safetensors; do
      cmp "$file" "$results/two-cards/checkpoint/$(basename "$file")" || failed+=(same-checkpoint)
    done
    tail -n 1 "$results/two-cards/metrics.jsonl"
  else
    echo "ranks: $cards card(s); two and mpirun are needed for more"
  fi
fi

if wants sanitize; then
  # In names of tests Catch reads a comma as "or", so the beginning of a name is enough.
  for tool in memcheck racecheck; do
    heading "compute-sanitizer $tool"
    begin_part
    limited compute-sanitizer --tool "$tool" --error-exitcode 9 --log-file "$results/$tool.txt" \
      "$build/tests/engram_tests_ops" "op table: gradients of a second use*,fused attention: as exact*" \
      >"$results/$tool-tests.txt" || failed+=("$tool")
    tail -n 1 "$results/$tool.txt"
    # Its last line says how many tests ran; of none nothing would be found.
    tail -n 2 "$results/$tool-tests.txt"
    grep -q "^All tests passed\|^test cases:" "$results/$tool-tests.txt" || failed+=("$tool-tests")
  done
  heading "compute-sanitizer memcheck of training steps, captured ones too"
  begin_part
  limited compute-sanitizer --tool memcheck --error-exitcode 9 --log-file "$results/memcheck-training.txt" \
    "$build/tests/engram_tests_apps" "steps on every device have*" >"$results/memcheck-training-tests.txt" ||
    failed+=(memcheck-training)
  tail -n 1 "$results/memcheck-training.txt"
fi

heading "Done; everything is in $results"
if ((${#failed[@]} > 0)); then
  echo "tests/gpu/run.sh: every part must succeed, these did not: ${failed[*]}" >&2
  exit 1
fi
