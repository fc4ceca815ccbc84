#!/usr/bin/env bash
# Runs the program as several processes, by mpirun, and compares what they leave with what one process leaves: bytes of
# checkpoints, numbers of metrics. Then it stops and kills ranks, takes their memory, fills a disk, and plays Slurm.
#   bash tests/ranks.sh PROGRAM [KILLS [PART ...]]
#     PROGRAM  build/release/apps/engram
#     KILLS    how many runs lose a rank [10]
#     PART     same_bits commands stops kills failures memory slurm, files of tests/ranks [all of them]
# The test ranks_program of ctest, where MPI was found. tests/nightly.sh has it with 100 kills, and above ten with ranks
# that hang, more families on the device simulated, and a table that one process cannot hold, which takes minutes more.
set -euo pipefail

program=$(realpath -- "${1:?tests/ranks.sh: which program?}")
kills=${2:-10}
parts=("${@:3}")
if ((${#parts[@]} == 0)); then parts=(same_bits commands stops kills failures memory slurm); fi
by_night=$((kills > 10))
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
for part in "${parts[@]}"; do
  if [[ ! -f $root/tests/ranks/$part.sh ]]; then
    echo "tests/ranks.sh: a part must be a file of tests/ranks, got '$part'" >&2
    exit 2
  fi
done
source "$root/tests/ranks/setting.bash"
for part in "${parts[@]}"; do source "$root/tests/ranks/$part.sh"; done
echo "All of it held."
