#!/usr/bin/env bash
# The studies of Dai et al.: "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context" (2019), scaled down to two
# cores and the King James Bible: recurrence x encoding x loss (table 6) and text without long dependencies (table 7), each with
# which of the paper's orderings hold and a figure; what each trained model makes of longer contexts (tables 6 and 8), then the
# speed of evaluation (table 9).
#   bash apps/configs/transformer-xl/ablations.sh [SEEDS] [STEPS]         SEEDS: 1,2,3 unless given; STEPS: those of the configs
# About half an hour of training a seed. Interrupted, the training goes on where it stopped when it is given the same
# command again. STRICT=1: it ends with an error unless all orderings hold. LENGTHS=100,200: contexts of the last part;
# TOKENS=50000 and POSITIONS=2000: what is read with contexts of every length.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
cd -- "$root"
source apps/configs/study.sh
begin_study transformer-xl/ablations.sh 1,2,3 "$@"
configs=apps/configs/transformer-xl
common=(--seeds "$seeds" --test "${steps[@]}")

chapters=$runs/kjv-chapters
if [[ ! -f $chapters/data.json ]]; then
  shuffled_chapters
  "$engram" prepare --kind char --text "$runs/kjv-chapters.txt" --out "$chapters"
fi

# Full loss: 64 new tokens a step. Half loss: 32, after 32 that are read again.
half="training.block=32,training.extension=32"
out=$runs/transformer-xl
"$engram" sweep --config "$configs/kjv-ablation.toml" --data "$chapters" "${common[@]}" --out "$out/table-6" \
  --variant memory-relative-full:model.memory=64 \
  --variant "memory-relative-half:$half" \
  --variant memory-shaw-full:model.positions=shaw,model.position_rows=128 \
  --variant relative-full:model.memory=0 \
  --variant "relative-half:model.memory=0,$half" \
  --variant shaw-full:model.memory=0,model.positions=shaw,model.position_rows=64 \
  --variant "shaw-half:model.memory=0,model.positions=shaw,model.position_rows=64,$half" \
  --variant "sinusoidal-half:model.memory=0,model.positions=absolute_sinusoidal,$half" \
  --variant "learned-half:model.memory=0,model.positions=absolute_learned,model.position_rows=64,$half"

# What the paper found.
judge "$out/table-6" \
  "a memory helps: test_bpc: memory-relative-full < relative-full" \
  "a memory helps with half of the loss: test_bpc: memory-relative-half < relative-half" \
  "its positions beat Shaw's with a memory: test_bpc: memory-relative-full < memory-shaw-full" \
  "its positions beat Shaw's without one: test_bpc: relative-full < shaw-full" \
  "the same with half of the loss: test_bpc: relative-half < shaw-half" \
  "all of the loss is better than half, with a memory: test_bpc: memory-relative-full < memory-relative-half" \
  "all of the loss is better than half, without one: test_bpc: relative-full < relative-half" \
  "the same with Shaw's positions: test_bpc: shaw-full < shaw-half" \
  "relative positions beat absolute ones: test_bpc: shaw-half < sinusoidal-half < learned-half"
"$engram" figure sweep "$out/table-6" --x variant --metric test_bpc --out "$out/table-6.svg"

# Verses without their numbers in random order, always the same one: what came before a verse says little about it.
sentences=$runs/kjv-sentences
if [[ ! -f $sentences/data.json ]]; then
  cut -d' ' -f2- "$runs/kjv.txt" | shuf --random-source="$runs/kjv.txt" >"$runs/kjv-sentences.txt"
  "$engram" prepare --kind word --text "$runs/kjv-sentences.txt" --min-count 2 --oov unk --out "$sentences"
fi
"$engram" sweep --config "$configs/kjv-sentences.toml" --data "$sentences" "${common[@]}" --out "$out/table-7" \
  --variant memory-relative:model.memory=32 \
  --variant memory-shaw:model.positions=shaw,model.position_rows=64 \
  --variant relative:model.memory=0
judge "$out/table-7" \
  "its positions beat Shaw's: test_ppl: memory-relative < memory-shaw" \
  "a memory helps even so: test_ppl: memory-shaw < relative"
"$engram" figure sweep "$out/table-7" --x variant --metric test_ppl --out "$out/table-7.svg"

# What the models of the first seed (but for the one with sinusoids, which did not learn with every seed) make of more and
# less context than in training, and how much of it each uses.
trained() {
  for name in "$@"; do echo "$out/table-6/$name-seed-${seeds%%,*}"; done
}
mapfile -t all < <(trained memory-{relative-full,relative-half,shaw-full} {relative,shaw}-{full,half} learned-half)
"$engram" lengths "${all[@]}" --data "$chapters" --split valid --lengths 16,32,48,64,80,96,128,160,192,256 --tokens "${TOKENS:-50000}" \
  --csv "$out/lengths.csv" --svg "$out/lengths.svg"
mapfile -t group < <(trained memory-{relative,shaw}-full relative-full learned-half)
"$engram" recl "${group[@]}" --data "$chapters" --first 8 --step 8 --longest 160 --positions "${POSITIONS:-2000}" --csv "$out/recl.csv"

"$engram" bench --against-vanilla --lengths "${LENGTHS:-100,200,400,800,1800,2800,3800}" --steps 1 --svg "$out/table-9.svg"
