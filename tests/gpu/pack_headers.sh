#!/usr/bin/env bash
# Copies the header-only dependencies of this machine's packages into a folder, for machines without a package manager:
#   bash tests/gpu/pack_headers.sh FOLDER      then there: cmake -DENGRAM_HEADERS=FOLDER, or ENGRAM_HEADERS=FOLDER run.sh
set -euo pipefail

folder=${1:?pack_headers.sh: name the folder to make, as in: bash tests/gpu/pack_headers.sh .headers}
mkdir -p "$folder"
for headers in /usr/include/{fmt,nlohmann,CLI,toml++,catch2} /usr/include/eigen3/{Eigen,unsupported}; do
  if [[ ! -d $headers ]]; then
    echo "pack_headers.sh: $headers must be there; bash apps/install_packages.sh installs it" >&2
    exit 1
  fi
  cp -RL "$headers" "$folder/"
done
echo "$folder: $(du -sh "$folder" | cut -f1)"
