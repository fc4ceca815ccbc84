#!/usr/bin/env bash
# Has TensorBoard read the event files of small runs, and compares every number with metrics.jsonl.
#   bash tests/peers/event_files.sh [ENGRAM]      the program; build/program/apps/engram otherwise, which is built
# TensorBoard is that of ENGRAM_PEERS (default ~/.cache/engram-peers), a virtual environment outside the tree, into which it
# is installed if it is missing.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"
source tests/peers/environment.sh
peers_python 'tensorboard, numpy' tensorboard
if (($# > 0)); then engram=$1; else peers_program; fi

work=$(mktemp -d "${TMPDIR:-/tmp}/engram-tensorboard.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
cat docs/*.md >"$work/text"
prepare() { "$engram" prepare --text "$work/text" --split 80,10,10 "$@" >/dev/null 2>&1; }
prepare --kind char --vocabulary-from all --out "$work/char"
prepare --kind word --oov unk --out "$work/word"
# train NAME DATA CONFIG [--set ...]: a run with samples.
train() {
  local name=$1 data=$2 config=$3
  shift 3
  "$engram" train --config "apps/configs/kjv/$config.toml" --data "$work/$data" --out "$work/runs/$name" --steps 40 \
    --set training.report_every=3 training.validate_every=10 training.validate_blocks=2 training.sample_every=16 \
    training.batch=4 training.block=32 "$@" >/dev/null 2>&1
}
train spans char kjv-quick model.vocabulary=0
train memory word kjv-product-key model.vocabulary=0 product_key.subkeys=16
"$engram" train --data "$work/char" --out "$work/runs/spans" --resume --steps 60 >/dev/null 2>&1
"$engram" report "$work/runs/spans" "$work/runs/memory" --tensorboard "$work/events"
for run in spans memory; do "$python" tests/peers/event_files.py "$work/runs/$run" "$work/events/$run"; done
