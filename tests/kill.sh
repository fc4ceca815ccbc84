#!/usr/bin/env bash
# Kills the program (SIGKILL) at random moments of everything that it makes: runs of all families, optimisers and kinds of
# tables, of one process and of two ranks; fine-tuning, sweeps, preparing, imports, exports, mapped tables, pages and
# drawings. What was killed must go on, or begin anew where nothing was saved, and come to the bytes of what nobody killed.
#   bash tests/kill.sh N [PROGRAM [OPTION ...]]
#     N        how many kills hit
#     PROGRAM  [build/release/apps/engram]
#     OPTION   --seed S (moments; else drawn and printed), --only WORDS (cases with these in their names), --without WORDS,
#              --jobs N
# TMPDIR says on which disk; one of memory is quickest.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
kills=${1:?tests/kill.sh: how many kills?}
program=${2:-$root/build/release/apps/engram}
exec python3 "$root/tests/faults/kills.py" "$kills" "$program" "${@:3}"
