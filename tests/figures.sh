#!/usr/bin/env bash
# The pictures of docs/guide/figures.md, from small runs over the King James Bible (Debian package bible-kjv): some minutes on
# two cores. Runs that are in FOLDER already are not trained again.
#   bash tests/figures.sh PROGRAM FOLDER [PICTURES]    PICTURES: docs/pictures unless given
set -euo pipefail
export LC_ALL=C.UTF-8

program=$(realpath -- "${1:?tests/figures.sh: which program?}")
folder=${2:?tests/figures.sh: which folder for the runs?}
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
pictures=$(realpath -- "${3:-$root/docs/pictures}")
mkdir -p -- "$folder"
cd -- "$folder"
if [[ ! -s kjv.txt ]]; then bible -f gen1:1-rev22:21 | sed 's/^[^ ]* //' | awk '{ size += length($0) + 1 } size < 700000' >kjv.txt; fi
if [[ ! -f data/data.json ]]; then "$program" prepare --kind char --text kjv.txt --split 90,5,5 --out data; fi

"$program" sweep --config "$root/apps/configs/kjv/kjv-quick.toml" --data data --out slots --threads 1 \
  --vary model.layers=1,2 --vary model.slots=4,16,64,256 --seeds 1,2,3 \
  --set model.width=32 model.max_span=64 training.batch=16 schedule.steps=250 schedule.warmup=20 \
  training.validate_every=50 training.checkpoint_every=250 training.report_every=10
cat >recurrent.toml <<'END'
[model]
family = "recurrent"
embedding_width = 32
width = 48
window = 10
[optimizer]
kind = "adam"
clip = 5
[schedule]
rate = 0.005
decay = "none"
steps = 1500
[training]
batch = 32
block = 20
validate_every = 500
checkpoint_every = 1500
seed = 1
END
"$program" sweep --config recurrent.toml --data data --out readouts --threads 1 \
  --variant RM:model.readout=recurrent_memory --variant attention:model.readout=attention \
  --variant key-value:model.readout=key_value \
  --variant key-value-predict:model.readout=key_value_predict

"$program" figure sweep slots --x slots --out "$pictures/figure-sweep.svg" --log x
"$program" figure curves slots --metric valid_bpc --where layers=2 --out "$pictures/figure-curves.svg"
"$program" figure heads slots/layers-2_slots-16-seed-1 --heads 0:0,0:1,1:0,1:3 --data data --tokens 300 --rows 24 \
  --out "$pictures/figure-heads.svg"
"$program" figure offsets readouts/RM readouts/attention readouts/key-value readouts/key-value-predict --data data \
  --split valid --out "$pictures/figure-offsets.svg"
