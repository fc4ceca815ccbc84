#!/usr/bin/env bash
# Two ranks of one thread against one process of two threads: tokens a second, in turns.
#   bash tests/bench_ranks.sh PROGRAM [ROUNDS [CONFIG ...]]
#     PROGRAM  build/release/apps/engram
#     ROUNDS   of each config [3]
#     CONFIG   [bench-a bench-c bench-xl bench-product-key of apps/configs/bench]
# Compare within one row only: machines are shared. Prints medians over the rounds and the ratio of each round. About
# five minutes on two quiet cores.
set -euo pipefail

program=$(realpath -- "${1:?tests/bench_ranks.sh: which program?}")
rounds=${2:-3}
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
configs=("${@:3}")
if ((${#configs[@]} == 0)); then configs=(bench-a bench-c bench-xl bench-product-key); fi
steps=${ENGRAM_BENCH_STEPS:-3}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMP_WAIT_POLICY=passive
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-ranks.XXXXXX")
trap 'rm -rf "$folder"' EXIT

field() { grep -oE "\"$2\": ?[-+0-9.e]+" "$1" | tail -n 1 | sed -E 's/.*: ?//'; }
median() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

printf '%-20s %12s %12s %8s  %-20s %8s %10s\n' config '1 x 2 tok/s' '2 x 1 tok/s' ratio rounds hidden% 'MB a step'
for name in "${configs[@]}"; do
  bench=(bench --config "$root/apps/configs/bench/$name.toml" --steps "$steps" --product-size 512 --json)
  for ((round = 0; round < rounds; round++)); do
    "$program" "${bench[@]}" --threads 2 >"$folder/one" 2>"$folder/said" || { cat "$folder/said" >&2; exit 1; }
    # The ranks are compared with two threads here, not with one rank of one.
    mpirun -n 2 "$program" "${bench[@]}" --threads 1 --one-rank-ms 1 >"$folder/two" 2>"$folder/said" || {
      cat "$folder/said" >&2
      exit 1
    }
    field "$folder/one" tokens_per_second >>"$folder/$name.one"
    field "$folder/two" tokens_per_second >>"$folder/$name.two"
    field "$folder/two" hidden_share >>"$folder/$name.hidden"
  done
  ratios=$(paste "$folder/$name.one" "$folder/$name.two" | awk '{ printf "%.2f ", $2 / $1 }')
  awk -v name="$name" -v one="$(median <"$folder/$name.one")" -v two="$(median <"$folder/$name.two")" \
    -v ratio="$(tr ' ' '\n' <<<"$ratios" | grep . | median)" -v ratios="$ratios" \
    -v hidden="$(median <"$folder/$name.hidden")" -v sent="$(field "$folder/two" bytes_sent_per_step)" 'BEGIN {
      printf "%-20s %12.0f %12.0f %8.2f  %-20s %8.1f %10.2f\n", name, one, two, ratio, ratios, 100 * hidden, sent / 1e6
    }'
done
