#!/usr/bin/env bash
# What `engram bench --cost` counts of whole kernels, whose answers follow from their shapes.
#   bash tests/cost.sh PROGRAM     PROGRAM: engram, built with ENGRAM_COST=ON
set -euo pipefail

program=${1:?tests/cost.sh: which program?}
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-cost.XXXXXX")
trap 'rm -rf "$folder"' EXIT
"$program" bench --device simulated --cost --json >"$folder/forward.json"
export OMP_NUM_THREADS=2
ENGRAM_SIMULATED_ORDER=shuffled "$program" bench --device simulated --cost --json >"$folder/shuffled.json"
"$program" bench --device simulated --cost | awk 'length > 120 { print "too long: " $0; exit 1 }'

python3 - "$folder" <<'END'
import json
import sys

reports = [json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("forward", "shuffled")]
kernels = {kernel["kernel"]: kernel for kernel in reports[0]["kernels"]}


def require(what, got, wanted):
    if got != wanted:
        sys.exit(f"tests/cost.sh: {what} must be {wanted}, got {got}")


# Threads and blocks in another order, on several threads of the host: the same counts.
for kernel in reports[1]["kernels"]:
    require(f"{kernel['kernel']} in another order", kernel["places"], kernels[kernel["kernel"]]["places"])
# One row of 128 bf16 numbers for each of 128 tokens is read and written, in packs of 16 bytes.
for kernel in ("layer_norm_forward", "attention_forward", "attention_backward"):
    if kernel not in kernels:
        sys.exit(f"tests/cost.sh: the step must call {kernel}, got {sorted(kernels)}")
norm = kernels["layer_norm_forward"]["places"][0]
require("lanes of layer_norm_forward that read", norm["global_reads"]["lanes"] % 32, 0)
rows = 2 * 64 * norm["launches"]
require("written bytes of layer_norm_forward's rows", norm["global_writes"]["bytes"] >= rows * 128 * 2, True)
# Products by tensor cores: 16 x 8 x 16 of them a warp.
forward = kernels["attention_forward"]["places"]
require("products of attention_forward", sum(place["mma"] for place in forward) > 0, True)
END
echo "tests/cost.sh: counts are as they must be"
