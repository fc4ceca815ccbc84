#!/usr/bin/env bash
# Figure 2 of Sukhbaatar et al.: "Augmenting Self-attention with Persistent Memory" (2019), scaled down to two cores and the
# King James Bible: the number of persistent slots, where they are, and adaptive against fixed spans; then the tables, which
# of the paper's orderings hold, and the figure: runs/figure-2/place.svg and slots.svg.
#   bash apps/configs/all-attention/figure-2.sh [SEEDS] [STEPS]    SEEDS: 1,2,3 unless given; STEPS: those of the config
# Interrupted, it goes on where it stopped when it is given the same command again.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
cd -- "$root"
seeds=${1:-1,2,3}
engram=build/program/apps/engram
config=apps/configs/all-attention/figure-2/kjv.toml
data=runs/kjv-data
for needed in "$engram" runs/kjv.txt; do
  if [[ ! -s $needed ]]; then
    echo "apps/configs/all-attention/figure-2.sh: '$needed' must be there, got nothing" >&2
    echo "  bash apps/quickstart.sh makes it" >&2
    exit 1
  fi
done
# In the order of the text: the last books are held out.
if [[ ! -f $data/data.json ]]; then "$engram" prepare --kind char --text runs/kjv.txt --split 90,5,5 --out "$data"; fi
common=(--config "$config" --data "$data" --seeds "$seeds" --test)
if (($# > 1)); then common+=(--set "schedule.steps=$2" --set "training.checkpoint_every=$2"); fi

# At equal parameters: six layers with 192 slots per head have as many as four layers with a second sublayer 384 wide.
second="model.layers=4,model.slots=0,model.inner=384"
"$engram" sweep "${common[@]}" --out runs/figure-2/place \
  --variant all:model.memory_mode=all \
  --variant attn-split:model.memory_mode=attn_split \
  --variant single-head:model.memory_mode=single_head \
  --variant head-split:model.memory_mode=head_split,model.slots=384 \
  --variant "ff-attn:model.memory_mode=ff_attn,$second" \
  --variant "transformer:model.memory_mode=transformer,$second"

"$engram" sweep "${common[@]}" --out runs/figure-2/slots \
  --variant 0:model.memory_mode=none,model.slots=0 \
  --variant 24:model.slots=24 --variant 48:model.slots=48 --variant 96:model.slots=96 --variant 384:model.slots=384

"$engram" sweep "${common[@]}" --out runs/figure-2/spans \
  --variant fixed-64:model.span=fixed,model.max_span=64,training.span_loss=0 \
  --variant fixed-256:model.span=fixed,training.span_loss=0 \
  --variant dynamic:model.span=dynamic

echo
"$engram" orderings runs/figure-2/place \
  --claim "slots in the attention do as well as a feed-forward sublayer: test_bpc: all < transformer" \
  --claim "one softmax over positions and slots is better than two: test_bpc: all < attn-split" \
  --claim "slots of each head are better than shared ones: test_bpc: attn-split < single-head" \
  --claim "heads for slots alone are worse: test_bpc: all < head-split" \
  --claim "slots in every layer are better than a sublayer of them: test_bpc: all < ff-attn"
"$engram" orderings runs/figure-2/slots \
  --claim "more slots, fewer bits: test_bpc: 0 > 24 > 48 > 96 > 384"
"$engram" figure sweep runs/figure-2/place --metric test_bpc --x variant --out runs/figure-2/place.svg
"$engram" figure sweep runs/figure-2/slots --metric test_bpc --x model.slots --out runs/figure-2/slots.svg
