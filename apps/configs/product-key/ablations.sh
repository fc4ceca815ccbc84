#!/usr/bin/env bash
# The ablations of Lample et al.: "Large Memory Layers with Product Keys" (2019), section 4, scaled down to two cores and
# the King James Bible: how many slots, with and without batch norm of the queries; product keys against flat ones; the layer
# that has the memory; heads and reads of a head. Then the table, and which of the paper's orderings hold.
#   bash apps/configs/product-key/ablations.sh [SEEDS] [STEPS]         SEEDS: 1 unless given; STEPS: those of the config
# 26 runs a seed, each about 85 seconds of processor time. Interrupted, it goes on where it stopped when it is given the
# same command again. STRICT=1: it ends with an error unless all orderings hold.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
cd -- "$root"
seeds=${1:-1}
if (($# > 2)) || ! [[ $seeds =~ ^[0-9]+(,[0-9]+)*$ && ${2:-1} =~ ^[1-9][0-9]*$ ]]; then
  echo "apps/configs/product-key/ablations.sh: arguments must be [SEEDS] [STEPS], as 1,2 and 500, got: $*" >&2
  exit 2
fi
if [[ ! -s runs/kjv.txt ]]; then
  echo "apps/configs/product-key/ablations.sh: 'runs/kjv.txt' must be there, got nothing" >&2
  echo "  bash apps/quickstart.sh makes it" >&2
  exit 1
fi
cmake --preset program --log-level=WARNING >/dev/null
cmake --build build/program --target engram --parallel "$(nproc)"
engram=build/program/apps/engram

# Chapters in random order, always the same one, so that the held-out text is of the same kind as the rest; subwords, of
# which there are many to know something about.
data=runs/kjv-chapters-bpe-4000
if [[ ! -f $data/data.json ]]; then
  awk '{ split($1, place, ":"); if (place[1] != last) { chapter++; last = place[1] } print chapter "\t" $0 }' runs/kjv.txt >runs/kjv-numbered.txt
  cut -f1 runs/kjv-numbered.txt | uniq | shuf --random-source=runs/kjv.txt |
    awk -F'\t' 'NR == FNR { text[$1] = text[$1] $2 "\n"; next } { printf "%s", text[$1] }' runs/kjv-numbered.txt - >runs/kjv-chapters.txt
  "$engram" prepare --kind bpe --text runs/kjv-chapters.txt --vocabulary 4000 --out "$data"
fi

sweep=(--config apps/configs/kjv/kjv-product-key-ablation.toml --data "$data" --seeds "$seeds" --test --out runs/product-key)
if (($# > 1)); then sweep+=(--set "schedule.steps=$2" --set "training.checkpoint_every=$2" --set "training.validate_every=$2"); fi

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
"$engram" figure sweep runs/product-key --metric test_ppl_bpe --x variant --out runs/product-key/ablations.svg

# What the paper found. Its "alike" is here: perplexities at most 2% apart.
strict=()
if [[ ${STRICT:-0} == 1 ]]; then strict=(--strict); fi
claims=(
  "more slots, lower perplexity: test_ppl_bpe: slots-1024 > slots-4096 > base > slots-36864 > slots-65536"
  "the same without batch norm: test_ppl_bpe: no-norm-1024 > no-norm-4096 > no-norm-16384 > no-norm-36864 > no-norm-65536"
  "the largest memory beats none: test_ppl_bpe: slots-65536 < none"
  "batch norm lowers the perplexity of the largest: test_ppl_bpe: slots-65536 < no-norm-65536"
  "batch norm uses as many slots or more, of 16384: memory_usage: base >= no-norm-16384"
  "batch norm uses as many slots or more, of 36864: memory_usage: slots-36864 >= no-norm-36864"
  "batch norm uses as many slots or more, of 65536: memory_usage: slots-65536 >= no-norm-65536"
  "batch norm has the weights more even, of 65536: memory_kl: slots-65536 <= no-norm-65536"
  "product keys use more slots than flat ones, of 1024: memory_usage: slots-1024 > flat-1024"
  "product keys use more slots than flat ones, of 4096: memory_usage: slots-4096 > flat-4096"
  "product keys use more slots than flat ones, of 16384: memory_usage: base > flat-16384"
  "product keys have the lower perplexity, of 16384: test_ppl_bpe: base < flat-16384"
  "a memory in layer 4 beats one in the first: test_ppl_bpe: layer-4 < layer-1"
  "a memory in layer 5 beats one in the first: test_ppl_bpe: base < layer-1"
  "a memory in layer 5 beats one in the last: test_ppl_bpe: base < layer-6"
  "more reads of a head, more slots used: memory_usage: heads-1-reads-8 <= heads-1-reads-16 <= heads-1-reads-32"
  "more heads, more slots used: memory_usage: heads-1-reads-16 <= heads-2-reads-16 <= base"
  "more reads, lower perplexity: test_ppl_bpe: heads-1-reads-8 > heads-1-reads-16 > heads-1-reads-32"
  "32 reads, whoever reads them: test_ppl_bpe: heads-1-reads-32 ~2% heads-2-reads-16 ~2% heads-4-reads-8"
  "64 reads, whoever reads them: test_ppl_bpe: heads-2-reads-32 ~2% base"
)
"$engram" orderings runs/product-key "${strict[@]}" "${claims[@]/#/--claim=}"
