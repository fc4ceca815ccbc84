#!/usr/bin/env bash
# The studies of Dai et al.: "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context" (2019), scaled down to two
# cores and the King James Bible: recurrence x encoding x loss (table 6) and text without long dependencies (table 7), with
# what each trained model makes of longer contexts (tables 6 and 8), then the speed of evaluation (table 9).
#   bash apps/configs/transformer-xl/ablations.sh [SEEDS] [STEPS]         SEEDS: 1,2,3 unless given; STEPS: those of the configs
# About half an hour of training a seed. Interrupted, the training goes on where it stopped when it is given the same
# command again.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
cd -- "$root"
seeds=${1:-1,2,3}
engram=build/program/apps/engram
configs=apps/configs/transformer-xl
for needed in "$engram" runs/kjv.txt; do
  if [[ ! -s $needed ]]; then
    echo "apps/configs/transformer-xl/ablations.sh: '$needed' must be there, got nothing" >&2
    echo "  bash apps/quickstart.sh makes it" >&2
    exit 1
  fi
done
common=(--seeds "$seeds" --test)
if (($# > 1)); then common+=(--set "schedule.steps=$2" --set "training.checkpoint_every=$2" --set "training.validate_every=$2"); fi

# Chapters in random order, always the same one, so that the held-out text is of the same kind as the rest.
chapters=runs/kjv-chapters
if [[ ! -f $chapters/data.json ]]; then
  awk '{ split($1, place, ":"); if (place[1] != last) { chapter++; last = place[1] } print chapter "\t" $0 }' runs/kjv.txt >runs/kjv-numbered.txt
  cut -f1 runs/kjv-numbered.txt | uniq | shuf --random-source=runs/kjv.txt |
    awk -F'\t' 'NR == FNR { text[$1] = text[$1] $2 "\n"; next } { printf "%s", text[$1] }' runs/kjv-numbered.txt - >runs/kjv-chapters.txt
  "$engram" prepare --kind char --text runs/kjv-chapters.txt --out "$chapters"
fi

# Full loss: 64 new tokens a step. Half loss: 32, after 32 that are read again.
half="training.block=32,training.extension=32"
"$engram" sweep --config "$configs/kjv-ablation.toml" --data "$chapters" "${common[@]}" --out runs/transformer-xl/table-6 \
  --variant memory-relative-full:model.memory=64 \
  --variant "memory-relative-half:$half" \
  --variant memory-shaw-full:model.positions=shaw,model.position_rows=128 \
  --variant relative-full:model.memory=0 \
  --variant "relative-half:model.memory=0,$half" \
  --variant shaw-full:model.memory=0,model.positions=shaw,model.position_rows=64 \
  --variant "shaw-half:model.memory=0,model.positions=shaw,model.position_rows=64,$half" \
  --variant "sinusoidal-half:model.memory=0,model.positions=absolute_sinusoidal,$half" \
  --variant "learned-half:model.memory=0,model.positions=absolute_learned,model.position_rows=64,$half"

# Verses without their numbers in random order, always the same one: what came before a verse says little about it.
sentences=runs/kjv-sentences
if [[ ! -f $sentences/data.json ]]; then
  cut -d' ' -f2- runs/kjv.txt | shuf --random-source=runs/kjv.txt >runs/kjv-sentences.txt
  "$engram" prepare --kind word --text runs/kjv-sentences.txt --min-count 2 --oov unk --out "$sentences"
fi
"$engram" sweep --config "$configs/kjv-sentences.toml" --data "$sentences" "${common[@]}" --out runs/transformer-xl/table-7 \
  --variant memory-relative:model.memory=32 \
  --variant memory-shaw:model.positions=shaw,model.position_rows=64 \
  --variant relative:model.memory=0

# What the models of the first seed (but for the one with sinusoids, which did not learn with every seed) make of more and less context than in training, and how much of it each uses.
trained() {
  for name in "$@"; do echo "runs/transformer-xl/table-6/$name-seed-${seeds%%,*}"; done
}
mapfile -t all < <(trained memory-{relative-full,relative-half,shaw-full} {relative,shaw}-{full,half} learned-half)
"$engram" lengths "${all[@]}" --data "$chapters" --split valid --lengths 16,32,48,64,80,96,128,160,192,256 --tokens 50000 \
  --csv runs/transformer-xl/lengths.csv --svg runs/transformer-xl/lengths.svg
mapfile -t group < <(trained memory-{relative,shaw}-full relative-full learned-half)
"$engram" recl "${group[@]}" --data "$chapters" --first 8 --step 8 --longest 160 --positions 2000 --csv runs/transformer-xl/recl.csv

"$engram" bench --against-vanilla --lengths 100,200,400,800,1800,2800,3800 --steps 1 --svg runs/transformer-xl/table-9.svg

# Which of the papers' orderings hold, and the figure.
echo
"$engram" orderings runs/transformer-xl/table-6 \
  --claim "memory helps, relative positions: test_bpc: memory-relative-full < relative-full" \
  --claim "memory helps, Shaw's positions: test_bpc: memory-shaw-full < shaw-full" \
  --claim "memory helps under half loss: test_bpc: memory-relative-half < relative-half" \
  --claim "with memory, relative positions beat Shaw's: test_bpc: memory-relative-full < memory-shaw-full" \
  --claim "without memory too: test_bpc: relative-full < shaw-full" \
  --claim "full loss beats half loss: test_bpc: memory-relative-full < memory-relative-half" \
  --claim "positions under half loss: test_bpc: relative-half < shaw-half < sinusoidal-half < learned-half"
"$engram" orderings runs/transformer-xl/table-7 \
  --claim "memory helps even without long dependencies: test_ppl: memory-relative < relative" \
  --claim "with relative positions more than with Shaw's: test_ppl: memory-relative < memory-shaw"
"$engram" figure sweep runs/transformer-xl/table-6 --metric test_bpc --x variant --out runs/transformer-xl/table-6.svg
