#!/usr/bin/env bash
# Builds Engram with warnings as errors and runs its tests in empty Debian systems of their own, and prints a table.
#   bash tests/matrix.sh [SYSTEM ...]     bookworm-gcc bookworm-clang trixie-gcc trixie-clang trixie-aarch64 (all)
# Needs root and debootstrap, for aarch64 also qemu-user-static; what is committed is tested. The systems are kept in
# ENGRAM_ROOTS [build/roots], 2 GB each. Debian 13 has Open MPI in it, Debian 12 does without MPI. aarch64 is compiled by
# a cross compiler, and its tests of core, autograd and kernels run in the emulator.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
roots=${ENGRAM_ROOTS:-build/roots}
systems=("$@")
if ((${#systems[@]} == 0)); then
  systems=(bookworm-gcc bookworm-clang trixie-gcc trixie-clang trixie-aarch64)
fi
for system in "${systems[@]}"; do
  if [[ ! $system =~ ^(bookworm|trixie)-(gcc|clang)$ && $system != trixie-aarch64 ]]; then
    echo "tests/matrix.sh: a system must be bookworm-gcc, bookworm-clang, trixie-gcc, trixie-clang or" \
      "trixie-aarch64, got '$system'" >&2
    exit 2
  fi
done
if ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
  echo "tests/matrix.sh: it must be called by root, where debootstrap is installed" >&2
  exit 2
fi
mkdir -p "$roots"
roots=$(cd -- "$roots" && pwd)
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

# In the root $1: the rest, as a command of its shell.
inside() {
  local system=$roots/$1
  shift
  chroot "$system" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "$*"
}

# The root $1, of Debian's release $2, with what is committed.
prepare() {
  local root=$roots/$1 release=$2
  if [[ ! -e $root/etc/debian_version ]]; then
    debootstrap --variant=minbase "$release" "$root" >"$root.log"
  fi
  mkdir -p "$root/proc"
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
  rm -rf "$root/engram/source"
  mkdir -p "$root/engram/source"
  git archive HEAD | tar -x -C "$root/engram/source"
}

# The row of a system: what failed, or "passed", and the minutes.
row() { printf '%-16s %-34s %8s %8s  %s\n' "$@" >>"$rows"; }

check() {
  local system=$1 root=${1%-*} compiler=${1#*-}
  local packages=() configure=() build=/engram/build-$compiler version log=$roots/$system.log began minutes code=0
  printf '\n== %s (after %d s), log in %s\n' "$system" "$SECONDS" "$log"
  # Libraries of aarch64 would take the place of this machine's.
  if [[ $compiler == aarch64 ]]; then root=$system; fi
  prepare "$root" "${system%-*}"
  case $compiler in
    gcc) configure=(-DCMAKE_CXX_COMPILER=g++) packages=(binutils) ;;
    clang) configure=(-DCMAKE_CXX_COMPILER=clang++) packages=(clang libomp-dev) ;;
    aarch64)
      packages=(g++-aarch64-linux-gnu qemu-user-static libfmt-dev:arm64 libcatch2-dev:arm64 libsentencepiece-dev:arm64
        libtomlplusplus-dev:arm64 libedit-dev:arm64 libgomp1:arm64)
      configure=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
        -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu
        -DCMAKE_PREFIX_PATH=/usr/lib/aarch64-linux-gnu -DCMAKE_CROSSCOMPILING_EMULATOR=/usr/bin/qemu-aarch64-static)
      inside "$root" "dpkg --add-architecture arm64"
      ;;
  esac
  if [[ $root == trixie ]]; then packages+=(openmpi-bin libopenmpi-dev iproute2); fi
  began=$SECONDS
  inside "$root" "cd /engram/source && bash apps/install_packages.sh &&
    apt-get update -qq && apt-get install -qq --yes --no-install-recommends ${packages[*]}" >"$log" 2>&1 || code=$?
  if ((code != 0)); then
    row "$system" - - - "packages failed"
    return
  fi
  version=$(inside "$root" "$(sed -n 's/.*CMAKE_CXX_COMPILER=\([^ ]*\).*/\1/p' <<<"${configure[*]}") --version" |
    sed -n 1p)
  inside "$root" "cmake -S /engram/source -B $build -G Ninja -DENGRAM_WERROR=ON ${configure[*]} &&
    cmake --build $build --parallel $(nproc) -- -k 0" >>"$log" 2>&1 || code=$?
  minutes=$(awk -v s=$((SECONDS - began)) 'BEGIN { printf "%.1f", s / 60 }')
  if ((code != 0)); then
    row "$system" "${version:0:34}" "$minutes" - "build failed"
    return
  fi
  local tests=(--label-exclude "'nightly|gpu'")
  if [[ $compiler == aarch64 ]]; then tests=(-R "'^(core|autograd|reference|ops)$'" --timeout 7200); fi
  began=$SECONDS
  inside "$root" "export OMP_WAIT_POLICY=passive; ctest --test-dir $build --parallel 2 --output-on-failure \
    --no-tests=error ${tests[*]}" >>"$log" 2>&1 || code=$?
  row "$system" "${version:0:34}" "$minutes" "$(awk -v s=$((SECONDS - began)) 'BEGIN { printf "%.1f", s / 60 }')" \
    "$(grep -E '^[0-9]+% tests passed' "$log" | tail -n 1)"
}

row system compiler build tests result
for system in "${systems[@]}"; do check "$system"; done
for root in "$roots"/*/; do
  if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
done
printf '\nminutes of both cores\n'
cat "$rows"
# A system that failed has no row that ends with no failures.
if grep -v '^system ' "$rows" | grep -qv ' 0 tests failed'; then exit 1; fi
