#!/usr/bin/env bash
# Figure 2 of Sukhbaatar et al.: "Augmenting Self-attention with Persistent Memory" (2019), scaled down to two cores and the
# King James Bible: the number of persistent slots, where they are, and adaptive against fixed spans; then the table, which of
# the paper's orderings hold, and the figure.
#   bash apps/configs/all-attention/figure-2.sh [SEEDS] [STEPS]    SEEDS: 1,2,3 unless given; STEPS: those of the config
# 14 runs a seed, each about two minutes of two quiet cores. Interrupted, it goes on where it stopped when it is given the
# same command again. STRICT=1: it ends with an error unless all orderings hold.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
cd -- "$root"
source apps/configs/study.sh
begin_study all-attention/figure-2.sh 1,2,3 "$@"

# In the order of the text: the last books are held out.
data=$runs/kjv-data
if [[ ! -f $data/data.json ]]; then "$engram" prepare --kind char --text "$runs/kjv.txt" --split 90,5,5 --out "$data"; fi

# At equal parameters: six layers with 192 slots per head have as many as four layers with a second sublayer 384 wide.
second="model.layers=4,model.slots=0,model.inner=384"
out=$runs/figure-2
"$engram" sweep --config apps/configs/all-attention/figure-2/kjv.toml --data "$data" --seeds "$seeds" --test --out "$out" \
  "${steps[@]}" \
  --variant all:model.memory_mode=all \
  --variant attn-split:model.memory_mode=attn_split \
  --variant single-head:model.memory_mode=single_head \
  --variant head-split:model.memory_mode=head_split,model.slots=384 \
  --variant "ff-attn:model.memory_mode=ff_attn,$second" \
  --variant "transformer:model.memory_mode=transformer,$second" \
  --variant slots-0:model.memory_mode=none,model.slots=0 \
  --variant slots-24:model.slots=24 --variant slots-48:model.slots=48 --variant slots-96:model.slots=96 \
  --variant slots-384:model.slots=384 \
  --variant fixed-64:model.span=fixed,model.max_span=64,training.span_loss=0 \
  --variant fixed-256:model.span=fixed,training.span_loss=0 \
  --variant dynamic:model.span=dynamic

# What the paper found, of its figure 2 and table 2. Its "alike" is here: bits at most 2% apart.
judge "$out" \
  "slots are of use: test_bpc: slots-24 < slots-0" \
  "more slots, fewer bits: test_bpc: slots-0 > slots-24 > slots-48 > slots-96 > all > slots-384" \
  "one softmax beats one for each: test_bpc: all < attn-split" \
  "slots in all heads beat slots in one: test_bpc: attn-split < single-head" \
  "heads of slots alone do not work well: test_bpc: all < head-split" \
  "slots beat a second sublayer of attention: test_bpc: all < ff-attn" \
  "a Transformer of as many parameters is alike: test_bpc: all ~2% transformer" \
  "spans that may be short cost nothing: test_bpc: all ~2% fixed-256"

"$engram" figure sweep "$out" --x slots --where memory_mode=all --where span=adaptive --metric test_bpc \
  --out "$out/slots.svg"
"$engram" figure sweep "$out" --x variant --metric test_bpc --width 180mm --out "$out/variants.svg"
