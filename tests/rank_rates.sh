#!/usr/bin/env bash
# Holds what engram count predicts of ranks against what engram bench measures, on a loopback of limited rate.
#   bash tests/rank_rates.sh PROGRAM [CONFIG [RATE ...]]
#     PROGRAM  build/release/apps/engram
#     CONFIG   [apps/configs/bench/bench-xl.toml]
#     RATE     of the whole loopback, in Mbit/s [500 2000]
# As root: the loopback is one of its own (unshare), so that nothing else on the machine is slowed down. Two ranks of one
# thread each send through it, so each has half of the rate. Prints a table. The bytes must agree; seconds are shown with
# the ratio of what was seen to what was said, because machines are shared. What is on its way moves only while a rank
# looks at it, between two operations of backward: so an exchange that is hidden may be seen to take longer than it must.
# Two to four minutes; tests/nightly.sh has it.
set -euo pipefail

program=$(realpath -- "${1:?tests/rank_rates.sh: which program?}")
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
config=$(realpath -- "${2:-$root/apps/configs/bench/bench-xl.toml}")
rates=("${@:3}")
if ((${#rates[@]} == 0)); then rates=(500 2000); fi
ranks=2 steps=${ENGRAM_BENCH_STEPS:-5}
if ! unshare --net true 2>/dev/null || ! command -v tc >/dev/null; then
  echo "tests/rank_rates.sh: left out, a network of its own with a limited rate needs root and tc (iproute2)"
  exit 0
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# Bytes go through the loopback, not through shared memory.
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_pml=ob1
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-rates.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# field FILE PATTERN: the number behind the last "PATTERN":
field() { grep -oE "\"$2\": ?[-+0-9.e]+" "$1" | tail -n 1 | sed -E 's/.*: ?//'; }

bench=(bench --config "$config" --steps "$steps" --product-size 512 --json)
printf '%s, %s ranks of one thread, %s steps each\n' "$(basename "$config" .toml)" "$ranks" "$steps"
printf '%8s %10s %28s %28s %10s\n' Mbit/s 'MB a step' 'exchange, ms: said, seen' 'waited, ms: said, seen' 'values, ms'
for rate in "${rates[@]}"; do
  unshare --net bash -c '
    set -euo pipefail
    ip link set lo up
    tc qdisc add dev lo root tbf rate "$1mbit" burst 256kb latency 1s
    shift
    exec mpirun "$@"' rank_rates "$rate" -n "$ranks" "$program" "${bench[@]}" >"$folder/seen" 2>"$folder/said" || {
    sed 's/^/  | /' "$folder/said" >&2
    exit 1
  }
  alone=$(field "$folder/seen" milliseconds_one_rank)
  "$program" count --config "$config" --ranks "$ranks" --json --latency 100 \
    --bandwidth "$(awk "BEGIN { print $rate / 1000 / $ranks }")" \
    --step-seconds "$(awk "BEGIN { print $alone / 1000 }")" >"$folder/predicted"
  # Statistics and losses are not in what a bench counts.
  sent=$(sed -E 's/.*"bytes_rank_0_sends_per_step": ?\{([^}]*)\}.*/\1/' <(tr -d '\n' <"$folder/predicted") |
    tr ',' '\n' | tr -d ' ' | awk -F: '/gradients|values|squared_norms|table_rows/ { sum += $2 } END { print sum }')
  if [[ $sent != "$(field "$folder/seen" bytes_sent_per_step)" ]]; then
    echo "tests/rank_rates.sh: rank 0 must send $sent bytes a step, got $(field "$folder/seen" bytes_sent_per_step)" >&2
    exit 1
  fi
  awk -v rate="$rate" -v sent="$sent" \
    -v exchange="$(field "$folder/predicted" exchange_seconds)" -v seen="$(field "$folder/seen" milliseconds_exchange)" \
    -v exposed="$(field "$folder/predicted" exposed_seconds)" \
    -v waited="$(field "$folder/seen" milliseconds_exchange_waited)" \
    -v values="$(field "$folder/predicted" gather_seconds)" -v gathered="$(field "$folder/seen" milliseconds_gather)" '
    function pair(said, seen) { return sprintf("%.1f, %.1f (%.2f)", 1000 * said, seen, said > 0 ? seen / said / 1000 : 0) }
    BEGIN {
      printf "%8d %10.2f %28s %28s %10s\n", rate, sent / 1e6, pair(exchange, seen), pair(exposed, waited),
        pair(values, gathered)
    }'
done
