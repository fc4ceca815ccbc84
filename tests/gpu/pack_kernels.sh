#!/usr/bin/env bash
# Copies the kernels that nvcc has made into a folder, for a machine with a card where minutes count: it need not make them.
#   bash tests/gpu/pack_kernels.sh FOLDER [BUILD]      then there: ENGRAM_KERNELS=FOLDER bash tests/gpu/run.sh
# BUILD [build/release] is brought up to date first; its kernels are those for the cards that it was configured for, 90 where
# nobody said. Objects and not programs are packed, as those are linked with the libraries of the machine that runs them. CMake
# refuses a folder whose sources have changed since.
set -euo pipefail
export LC_ALL=C

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${1:?pack_kernels.sh: name the folder to make, as in: bash tests/gpu/pack_kernels.sh .kernels}
mkdir -p -- "$folder"
folder=$(cd -- "$folder" && pwd)
cd -- "$root"
build=${2:-build/release}
if [[ ! -f $build/CMakeCache.txt ]] || ! grep -q '^ENGRAM_NVCC:FILEPATH=/' "$build/CMakeCache.txt"; then
  echo "pack_kernels.sh: '$build' must be a build folder for which nvcc was found, got none" >&2
  echo "  cmake --preset release makes one" >&2
  exit 1
fi
cmake --build "$build" --parallel "$(nproc)" --target engram_nvcc_objects
rm -f "$folder"/*.o "$folder/sources" "$folder/architectures"
cp -- "$build"/cuda/nvcc/*.o "$folder/"
# Every file of the tree that any of them was made of, by its contents.
cat "$build"/cuda/nvcc/*.o.d | tr -s ' \\\n' '\n' | sed -n "s|^$root/||p" | grep -E '^(core|cuda|nn|autograd)/' | sort -u |
  xargs sha256sum >"$folder/sources"
sed -n 's/^ENGRAM_USED_ARCHITECTURES:INTERNAL=//p' "$build/CMakeCache.txt" | tr ';' '\n' >"$folder/architectures"
printf '%s: %d objects of %d files for cards %s, %s\n' "$folder" "$(find "$folder" -name '*.o' | wc -l)" \
  "$(wc -l <"$folder/sources")" "$(paste -sd, "$folder/architectures")" "$(du -sh "$folder" | cut -f1)"
