#!/usr/bin/env bash
# The comparison of Daniluk et al.: "Frustratingly Short Attention Spans in Neural Language Modeling" (2017), section 4,
# scaled down to two cores and the King James Bible, whose chapters are the articles: RNN, LSTM, higher-order RNNs, recurrent
# memory, attention with one, two and three roles over 1, 5, 10 and 15 positions, 2- to 5-gram RNNs, and a wide LSTM as a
# control, all with as many parameters (the vectors of the input apart) as the LSTM. Then the table, ratios to the LSTM, and
# which of the paper's orderings hold.
#   bash apps/configs/key-value-predict/comparison.sh [SEEDS] [STEPS]         SEEDS: 1 unless given; STEPS: those of the config
# 26 runs a seed, each about a minute of two quiet cores. WORDS=13000 WIDTH=64 (4000 and the config's 96 unless given) makes
# the models with another vocabulary and other vectors, for which a run takes three minutes.
# Interrupted, it goes on where it stopped when it is given the same command again. STRICT=1: it ends with an error unless all
# orderings hold.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
cd -- "$root"
seeds=${1:-1}
if (($# > 2)) || ! [[ $seeds =~ ^[0-9]+(,[0-9]+)*$ && ${2:-1} =~ ^[1-9][0-9]*$ ]]; then
  echo "apps/configs/key-value-predict/comparison.sh: arguments must be [SEEDS] [STEPS], as 1,2 and 500, got: $*" >&2
  exit 2
fi
words=${WORDS:-4000}
vectors=${WIDTH:-96}
if ! [[ $words =~ ^[1-9][0-9]*$ && $vectors =~ ^[1-9][0-9]*$ ]]; then
  echo "apps/configs/key-value-predict/comparison.sh: WORDS and WIDTH must be whole numbers from 1 on, got '$words' and '$vectors'" >&2
  exit 2
fi
if [[ ! -s runs/kjv.txt ]]; then
  echo "apps/configs/key-value-predict/comparison.sh: 'runs/kjv.txt' must be there, got nothing" >&2
  echo "  bash apps/quickstart.sh makes it" >&2
  exit 1
fi
cmake --preset program --log-level=WARNING >/dev/null
cmake --build build/program --target engram --parallel "$(nproc)"
engram=build/program/apps/engram
config=apps/configs/kjv/kjv-key-value-predict.toml

# Every chapter is an article: a verse is a paragraph, whose sentences end by rule.
data=runs/kjv-articles-$words
if [[ ! -f $data/data.json ]]; then
  awk '{ split($1, place, ":")
         if (place[1] != last) { if (last != "") print "</doc>"; print "<doc id=\"" place[1] "\">"; last = place[1] }
         sub(/^[^ ]+ /, ""); print }
       END { print "</doc>" }' runs/kjv.txt >runs/kjv-articles.txt
  "$engram" prepare --kind word --articles runs/kjv-articles.txt --format doc --words "$words" --out "$data"
fi

# The width that makes a model as large as the LSTM, by the options of the model.
width_of() {
  local overrides=() option
  for option in "$@"; do overrides+=(--set "$option"); done
  # 120 can be cut into 2, 3, 4 and 5 parts.
  "$engram" count --config "$config" --data "$data" --set "model.embedding_width=$vectors" --set model.width=120 \
    "${overrides[@]}" --solve --json |
    sed -n '/"solved"/,/}/s/.*"width": *\([0-9]*\).*/\1/p'
}

out=runs/key-value-predict
if [[ $words-$vectors != 4000-96 ]]; then out+=-$words-$vectors; fi
sweep=(--config "$config" --data "$data" --seeds "$seeds" --test --out "$out"
  --set "model.embedding_width=$vectors" --set "model.width=$vectors")
if (($# > 1)); then sweep+=(--set "schedule.steps=$2" --set "training.checkpoint_every=$2" --set "training.validate_every=$2"); fi
# A variant with the width that its other options (SECTION.KEY=VALUE) ask for.
variant() {
  local name=$1 width
  shift
  width=$(width_of "$@")
  if [[ -z $width ]]; then
    echo "apps/configs/key-value-predict/comparison.sh: $name must have a width, got none from engram count --solve" >&2
    exit 1
  fi
  local all
  all=$(IFS=,; echo "$*")
  sweep+=(--variant "$name:model.width=$width,$all")
}
sweep+=(--variant lstm)
variant rnn model.encoder=rnn
variant fofe-hornn model.encoder=hornn_fofe
variant gated-hornn model.encoder=hornn_gated
for window in 1 5 10 15; do
  # Its tables of words make it larger than the others, in the paper as here.
  sweep+=(--variant "recurrent-memory-$window:model.readout=recurrent_memory,model.window=$window")
  variant "attention-$window" model.readout=attention "model.window=$window"
  variant "key-value-$window" model.readout=key_value "model.window=$window"
  variant "key-value-predict-$window" model.readout=key_value_predict "model.window=$window"
done
# Training that sees across blocks, as evaluation does.
variant key-value-predict-5-carried model.readout=key_value_predict model.window=5 model.carry=detached
for parts in 2 3 4 5; do variant "$parts-gram" model.readout=n_gram "model.parts=$parts"; done
# As wide as key-value-predict before a softmax as narrow, without any memory.
wide=$(width_of model.readout=key_value_predict)
sweep+=(--variant "wide-lstm:model.width=$wide,model.readout=n_gram,model.parts=1,model.output_width=$((wide / 3))")
"$engram" sweep "${sweep[@]}"
"$engram" figure sweep "$out" --metric test_ppl --x variant --out "$out/comparison.svg"

# Perplexities of different texts are compared by what they are of the LSTM's on the same text.
echo
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "test_ppl") column = i; next }
         NR == 2 { lstm = $column; printf "test perplexity as a share of the LSTM\047s\n" }
         { printf "%-30s %5.3f\n", $1, $column / lstm }' "$out/sweep.csv"
echo

strict=()
if [[ ${STRICT:-0} == 1 ]]; then strict=(--strict); fi
claims=(
  "an LSTM beats an RNN: test_ppl: lstm < rnn"
  "an LSTM beats a third-order RNN with fixed weights: test_ppl: lstm < fofe-hornn"
  "an LSTM beats a third-order RNN with gates: test_ppl: lstm < gated-hornn < fofe-hornn"
  "attention beats an LSTM: test_ppl: attention-10 < lstm"
  "keys and values beat one role: test_ppl: key-value-10 < attention-10"
  "three roles beat two: test_ppl: key-value-predict-5 < key-value-10"
  "three roles beat recurrent memory: test_ppl: key-value-predict-5 < recurrent-memory-15"
  "the 4-gram RNN beats keys and values: test_ppl: 4-gram < key-value-10"
  "the 4-gram RNN is as good as three roles: test_ppl: 4-gram ~2% key-value-predict-5"
  "windows do not matter, one role: test_ppl: attention-1 ~2% attention-5 ~2% attention-10 ~2% attention-15"
  "windows do not matter, two roles: test_ppl: key-value-1 ~2% key-value-5 ~2% key-value-10 ~2% key-value-15"
  "windows do not matter, three roles: test_ppl: key-value-predict-1 ~2% key-value-predict-5 ~2% key-value-predict-10 ~2% key-value-predict-15"
  "recurrent memory likes longer windows: test_ppl: recurrent-memory-15 < recurrent-memory-5 < recurrent-memory-1"
  "3- and 4-grams beat 2- and 5-grams: test_ppl: 4-gram < 2-gram"
  "a memory is what helps, not the narrow softmax: test_ppl: key-value-predict-5 < wide-lstm"
)
"$engram" orderings "$out" "${strict[@]}" "${claims[@]/#/--claim=}"
