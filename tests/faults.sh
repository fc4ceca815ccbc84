#!/usr/bin/env bash
# Lets calls of the system fail under the program, one a run: every write, flush, rename, open, mapping, truncation, close,
# folder that is made, file that is taken away, large allocation and line that is printed, of short runs of every command
# that reads or writes; and kills it before each of them. Then it takes the power away from a run, after every change that
# it made on the disk (tests/faults/power_loss.py).
#   bash tests/faults.sh [PROGRAM [OPTION ...]]
#     PROGRAM  [build/release/apps/engram]; ../tests beside it has libengram_faults.so, which CMake builds with the tests
#     OPTION   --only WORDS (cases with these in their names; no power is taken away), --kinds write,flush,.. , --messages
#              (every message that was met), --jobs N
# TMPDIR says on which disk; one of memory is quickest, and nothing here depends on it.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
program=$(realpath -- "${1:-$root/build/release/apps/engram}")
library=$(dirname -- "$program")/../tests/libengram_faults.so
if [[ ! -f $library ]]; then
  echo "tests/faults.sh: '$library' must be there, got none; cmake --build FOLDER --target engram_faults makes it" >&2
  exit 2
fi
python3 "$root/tests/faults/every_call.py" "$program" "$library" "${@:2}"
if (($# > 1)); then exit 0; fi
python3 "$root/tests/faults/power_loss.py" "$program" "$library"
