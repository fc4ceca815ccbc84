#!/usr/bin/env bash
# What `engram bench --cost` counts of whole kernels, whose answers follow from their shapes; and that some blocks of a
# launch stand for all, for a model of each family.
#   bash tests/cost.sh PROGRAM     PROGRAM: engram, built with ENGRAM_COST=ON
set -euo pipefail

program=${1:?tests/cost.sh: which program?}
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-cost.XXXXXX")
trap 'rm -rf "$folder"' EXIT
"$program" bench --device simulated --cost --json >"$folder/forward.json"
export OMP_NUM_THREADS=2
ENGRAM_SIMULATED_ORDER=shuffled "$program" bench --device simulated --cost --json >"$folder/shuffled.json"
"$program" bench --device simulated --cost | awk 'length > 120 { print "too long: " $0; exit 1 }'
"$program" bench --device simulated --cost --groups | awk 'length > 120 { print "too long: " $0; exit 1 }'
both() { # both NAME ARGUMENT...: with all blocks, and with some
  local name=$1
  shift
  "$program" bench --device simulated --cost --json --dtype bf16 "$@" >"$folder/$name.json"
  "$program" bench --device simulated --cost --json --dtype bf16 --blocks 16 "$@" >"$folder/$name-sampled.json"
}
both all-attention --set training.batch=4 training.block=128
both transformer-xl --config bench/bench-xl --set training.activations=bf16 training.batch=2 model.layers=1 \
  model.vocabulary=2000
both product-key --config bench/bench-product-key --set training.activations=bf16 training.batch=1 model.layers=2 \
  'product_key.layers=[1]' model.width=128 model.heads=2 product_key.subkeys=64 product_key.query_width=64
both recurrent --config bench/bench-key-value-predict --set training.batch=4 model.vocabulary=500 model.width=96 \
  model.embedding_width=64

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
# Neighbouring threads of the sums over columns have neighbouring banks.
for place in kernels["layer_norm_backward"]["places"]:
    for shared in (place["shared_reads"], place["shared_writes"]):
        require(f"wavefronts at {place['place']}", shared["wavefronts"], shared["wavefronts_without_conflicts"])


def near(what, got, wanted, share):
    if abs(got - wanted) > share * wanted:
        sys.exit(f"tests/cost.sh: {what} must be within {share:.0%} of {wanted}, got {got}")


# A few blocks of each launch: as many launches, and nearly the same time.
for name in ("all-attention", "transformer-xl", "product-key", "recurrent"):
    whole, sampled = (json.load(open(f"{sys.argv[1]}/{name}{end}.json")) for end in ("", "-sampled"))
    require(f"blocks of {name}", (whole["blocks_of_a_launch"], sampled["blocks_of_a_launch"]), (0, 16))
    require(f"groups of {name}", len(sampled["groups"]), len(whole["groups"]))
    for group, other in zip(whole["groups"], sampled["groups"]):
        what = f"{name}, {group['group']}"
        require(f"group of {what}", other["group"], group["group"])
        require(f"launches of {what}", other["launches"], group["launches"])
        for card, time in group["cards"].items():
            share = 0.02 if group["group"] == "all" else 0.1
            near(f"{what} on {card}", other["cards"][card]["milliseconds"], time["milliseconds"], share)
END
echo "tests/cost.sh: counts are as they must be"
