#!/usr/bin/env bash
# Compares Engram with plain PyTorch models of the same equations on this machine, the two programs taking turns.
#   bash tests/peers/compare.sh [OPTIONS OF compare.py]      --help lists them
# First both evaluate the same small run of each family, and must agree; then training steps of the bench configs are timed,
# evaluation, and generation.
# PyTorch goes into a virtual environment outside the tree: ENGRAM_PEERS (default ~/.cache/engram-peers).
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"
source tests/peers/environment.sh
# About a gigabyte; Python 3.11 or later.
peers_python 'torch, numpy, tomllib' torch numpy
peers_program

work=$(mktemp -d "${TMPDIR:-/tmp}/engram-peers.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
cat docs/*.md >"$work/text"
"$engram" prepare --kind char --text "$work/text" --split 80,10,10 --vocabulary-from all --out "$work/data" 2>/dev/null >/dev/null
# A small run of CONFIG (with options of engram train), evaluated by both programs.
agree() {
  local config=$1 run=$work/${1##*/}
  shift
  "$engram" train --config "apps/configs/$config.toml" --data "$work/data" --out "$run" \
    --set schedule.warmup=10 "$@" >/dev/null 2>&1
  local ours theirs
  ours=$("$engram" evaluate "$run" --data "$work/data" --split valid --json |
    sed -n 's/.*"nll" *: *\([0-9.eE+-]*\).*/\1/p' | head -n 1)
  theirs=$("$python" tests/peers/evaluate_run.py "$run" --data "$work/data" --split valid |
    sed -n 's/^nll \([0-9.]*\) .*/\1/p')
  awk -v config="$config" -v ours="$ours" -v theirs="$theirs" 'BEGIN {
    printf "A run of %s, evaluated by both: Engram %.6f nats, PyTorch %.6f nats\n", config, ours, theirs
    difference = ours - theirs
    if (difference < 0) difference = -difference
    if (ours == "" || theirs == "" || difference > 2e-5) { print "compare: these must agree within 2e-5" >"/dev/stderr"; exit 1 }
  }'
}
agree kjv/kjv-quick --steps 60 --set model.dropout=0.1 --set model.span_init=0.2
agree kjv/kjv-transformer-xl --steps 100 --set model.dropout=0.1 --set schedule.rate=1e-3
agree kjv/kjv-product-key --steps 60 --set model.dropout=0.1 --set product_key.subkeys=32
agree bench/bench-key-value-predict --steps 60 --set model.vocabulary=0 --set model.embedding_width=48 --set model.width=96
"$python" tests/peers/compare.py "$@"
