#!/usr/bin/env bash
# The ablations of Lample et al.: "Large Memory Layers with Product Keys" (2019), section 4, scaled down to two cores and
# the King James Bible: how many slots, with and without batch norm of the queries; product keys against flat ones; the layer
# that has the memory; heads and reads of a head; memories against more layers. Then the tables, which of the paper's
# orderings hold, and figures.
#   bash apps/configs/product-key/ablations.sh [SEEDS] [STEPS]         SEEDS: 1 unless given; STEPS: those of the config
# 31 runs a seed, each about 85 seconds of processor time, longer with flat keys or more layers. Interrupted, it goes on
# where it stopped when it is given the same command again. STRICT=1: it ends with an error unless all orderings hold.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
cd -- "$root"
source apps/configs/study.sh
begin_study product-key/ablations.sh 1 "$@"

# Subwords, of which there are many to know something about.
data=$runs/kjv-chapters-bpe-4000
if [[ ! -f $data/data.json ]]; then
  shuffled_chapters
  "$engram" prepare --kind bpe --text "$runs/kjv-chapters.txt" --vocabulary 4000 --out "$data"
fi

out=$runs/product-key
sweep=(--config apps/configs/kjv/kjv-product-key-ablation.toml --data "$data" --seeds "$seeds" --test --out "$out"
  "${steps[@]}")

# base, which all others are compared with: 128 x 128 slots in layer 5 of 6, 4 heads that read 16 each, batch norm.
sweep+=(--variant "none:product_key.layers=[]" --variant base)
for subkeys in 32 64 192 256; do
  sweep+=(--variant "slots-$((subkeys * subkeys)):product_key.subkeys=$subkeys")
done
for subkeys in 32 64 128 192 256; do
  sweep+=(--variant "no-norm-$((subkeys * subkeys)):product_key.subkeys=$subkeys,product_key.query_norm=none")
done
for subkeys in 32 64 128; do
  sweep+=(--variant "flat-$((subkeys * subkeys)):product_key.subkeys=$subkeys,product_key.keys=flat")
done
for layer in 1 2 3 4 6; do sweep+=(--variant "layer-$layer:product_key.layers=[$layer]"); done
for reads in "1 8" "1 16" "1 32" "2 16" "2 32" "4 8" "4 32"; do
  read -r heads selected <<<"$reads"
  sweep+=(--variant "heads-$heads-reads-$selected:product_key.heads=$heads,product_key.selected=$selected")
done
"$engram" sweep "${sweep[@]}"

# What the paper found. Its "alike" is here: perplexities at most 2% apart.
judge "$out" \
  "more slots, lower perplexity: test_ppl_bpe: slots-1024 > slots-4096 > base > slots-36864 > slots-65536" \
  "the same without batch norm: test_ppl_bpe: no-norm-1024 > no-norm-4096 > no-norm-16384 > no-norm-36864 > no-norm-65536" \
  "the largest memory beats none: test_ppl_bpe: slots-65536 < none" \
  "batch norm lowers the perplexity of the largest: test_ppl_bpe: slots-65536 < no-norm-65536" \
  "batch norm uses as many slots or more, of 16384: memory_usage: base >= no-norm-16384" \
  "batch norm uses as many slots or more, of 36864: memory_usage: slots-36864 >= no-norm-36864" \
  "batch norm uses as many slots or more, of 65536: memory_usage: slots-65536 >= no-norm-65536" \
  "batch norm has the weights more even, of 65536: memory_kl: slots-65536 <= no-norm-65536" \
  "product keys use more slots than flat ones, of 1024: memory_usage: slots-1024 > flat-1024" \
  "product keys use more slots than flat ones, of 4096: memory_usage: slots-4096 > flat-4096" \
  "product keys use more slots than flat ones, of 16384: memory_usage: base > flat-16384" \
  "product keys have the lower perplexity, of 16384: test_ppl_bpe: base < flat-16384" \
  "a memory in layer 4 beats one in the first: test_ppl_bpe: layer-4 < layer-1" \
  "a memory in layer 5 beats one in the first: test_ppl_bpe: base < layer-1" \
  "a memory in layer 5 beats one in the last: test_ppl_bpe: base < layer-6" \
  "more reads of a head, more slots used: memory_usage: heads-1-reads-8 <= heads-1-reads-16 <= heads-1-reads-32" \
  "more heads, more slots used: memory_usage: heads-1-reads-16 <= heads-2-reads-16 <= base" \
  "more reads, lower perplexity: test_ppl_bpe: heads-1-reads-8 > heads-1-reads-16 > heads-1-reads-32" \
  "32 reads, whoever reads them: test_ppl_bpe: heads-1-reads-32 ~2% heads-2-reads-16 ~2% heads-4-reads-8" \
  "64 reads, whoever reads them: test_ppl_bpe: heads-2-reads-32 ~2% base"

# Tables 2 and 4, and table 3: memories in the layer of the configuration, then by layer.
"$engram" figure sweep "$out" --x subkeys --by query_norm,keys --where 'layers=[5]' --where heads=4 --where selected=16 \
  --metric test_ppl_bpe,memory_usage,memory_kl --log x --out "$out/slots.svg"
# Figure 6: table 4 as curves.
"$engram" figure sweep "$out" --x subkeys --by keys --where 'layers=[5]' --where heads=4 --where selected=16 \
  --where query_norm=batch --metric test_ppl_bpe,inference_words_per_second --log x --out "$out/figure-6.svg"
"$engram" figure sweep "$out" --x layers --where subkeys=128 --where heads=4 --where selected=16 --where query_norm=batch \
  --where keys=product --metric test_ppl_bpe,memory_usage --out "$out/layers.svg"
"$engram" figure sweep "$out" --x selected --by heads --where subkeys=128 --where 'layers=[5]' --where query_norm=batch \
  --where keys=product --metric test_ppl_bpe,memory_usage --out "$out/reads.svg"

# Table 1 and figure 4, at half their depth: memories or more layers. A sweep of its own, as one sweep times its variants
# together.
depth=$runs/product-key-depth
"$engram" sweep --config apps/configs/kjv/kjv-product-key-ablation.toml --data "$data" --seeds "$seeds" --test \
  --out "$depth" "${steps[@]}" --variant "6-layers:product_key.layers=[]" --variant 6-layers-1-memory \
  --variant "6-layers-2-memories:product_key.layers=[3,5]" --variant "8-layers:model.layers=8,product_key.layers=[]" \
  --variant "12-layers:model.layers=12,product_key.layers=[]"
judge "$depth" \
  "each memory more is better: test_ppl_bpe: 6-layers > 6-layers-1-memory > 6-layers-2-memories" \
  "half the layers and a memory beat all of them without: test_ppl_bpe: 6-layers-1-memory < 12-layers"
"$engram" figure sweep "$depth" --x inference_words_per_second --metric test_ppl_bpe --label variant \
  --out "$out/figure-4.svg"
