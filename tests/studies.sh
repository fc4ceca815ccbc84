#!/usr/bin/env bash
# The scripts of the papers' studies (apps/configs/*/*.sh), each with a few steps of its own models on a part of the King
# James Bible (Debian package bible-kjv): they must run to their end, judge every claim and draw every figure. What the
# claims come to after so few steps says nothing. Three minutes of processor time.
#   bash tests/studies.sh PROGRAM FOLDER [SCRIPT ...]    SCRIPT: all-attention/figure-2 and so on; all unless given
set -euo pipefail
export LC_ALL=C.UTF-8

ENGRAM=$(realpath -- "${1:?tests/studies.sh: which program?}")
RUNS=${2:?tests/studies.sh: which folder for the runs?}
shift 2
mkdir -p -- "$RUNS"
RUNS=$(realpath -- "$RUNS")
export ENGRAM RUNS LENGTHS=20,40 TOKENS=3000 POSITIONS=20
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
scripts=("$@")
if ((${#scripts[@]} == 0)); then
  scripts=(all-attention/figure-2 transformer-xl/ablations product-key/ablations key-value-predict/comparison)
fi
if [[ ! -s $RUNS/kjv.txt ]]; then
  # Every fourth verse: as many different words as the configurations' clusters ask for. From the first one on: of others
  # the first nine tenths lack a letter that the rest has.
  bible -f gen1:1-rev22:21 | awk 'NR % 4 == 1' >"$RUNS/kjv.txt"
fi

fail() {
  echo "tests/studies.sh: $1" >&2
  exit 1
}

for script in "${scripts[@]}"; do
  path=apps/configs/$script.sh
  printf '\n== %s\n' "$path"
  began=$SECONDS
  said=$RUNS/${script//\//-}.txt
  bash "$root/$path" 1 2 >"$said" 2>&1 || { tail -20 "$said" >&2; fail "$path must end well"; }
  cat "$said"
  # Every claim of the script is in what it said, and none is about a variant that there is not.
  mapfile -t claims < <(sed -nE 's/^  "([^"]+): (test|memory)_[a-z_]+: .*/\1/p' "$root/$path")
  if ((${#claims[@]} == 0)); then fail "$path must have claims, got none"; fi
  for claim in "${claims[@]}"; do
    if ! grep -qF -- "$claim" "$said"; then fail "$path must judge '$claim'"; fi
  done
  if grep -q 'cannot be told' "$said"; then fail "$path must judge all claims, got one that cannot be told"; fi
  mapfile -t figures < <(sed -nE 's/.*--(out|svg) "(.*\.svg)".*/\2/p' "$root/$path")
  if ((${#figures[@]} == 0)); then fail "$path must draw a figure, got none"; fi
  out=$(sed -nE 's/^out=\$runs(.*)/\1/p' "$root/$path" | head -1)
  for figure in "${figures[@]}"; do
    drawn=${figure/\$out/$RUNS$out}
    if ! grep -q '</svg>' "$drawn"; then fail "$path must draw '$drawn', got nothing whole"; fi
  done
  echo "$path: ${#claims[@]} claims judged, ${#figures[@]} figures drawn, $((SECONDS - began)) s"
done
