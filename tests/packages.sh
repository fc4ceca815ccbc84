#!/usr/bin/env bash
# Makes the packages in Debian 12 and 13, each in a system of its own, and uses them as their users do, in fresh systems
# without a compiler: the commands of README, the archive, a program against the library; and removed they leave nothing.
#   bash tests/packages.sh [--use] [RELEASE ...]     bookworm trixie (both); --use: the packages that were made last
# Needs root and debootstrap; what is committed is packed. Where lintian is installed it must find nothing. The systems are
# kept in ENGRAM_ROOTS [build/roots]: those of tests/matrix.sh to build in, RELEASE-fresh as debootstrap makes them; the
# packages in RELEASE-packages.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
makes=true
if [[ ${1-} == --use ]]; then
  makes=false
  shift
fi
releases=("$@")
if ((${#releases[@]} == 0)); then releases=(bookworm trixie); fi
for release in "${releases[@]}"; do
  if [[ ! $release =~ ^(bookworm|trixie)$ ]]; then
    echo "tests/packages.sh: a release must be bookworm or trixie, got '$release'" >&2
    exit 2
  fi
done
if ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
  echo "tests/packages.sh: it must be called by root, where debootstrap is installed" >&2
  exit 2
fi
mkdir -p "${ENGRAM_ROOTS:-build/roots}"
roots=$(cd -- "${ENGRAM_ROOTS:-build/roots}" && pwd)
mounted=()
at_exit() {
  local place
  for place in "${mounted[@]}"; do umount "$place"; done
}
trap at_exit EXIT

fail() {
  printf 'tests/packages.sh: %s\n' "$1" >&2
  exit 1
}
say() { printf '\n== %s (after %d s)\n' "$1" "$SECONDS"; }

# In the root $1, as the user $2, in the folder $3: the rest, as a command of its shell.
inside() {
  local system=$roots/$1 user=$2 folder=$3
  shift 3
  chroot --userspec="$user" "$system" /usr/bin/env -i HOME="$folder" PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive OMP_WAIT_POLICY=passive bash -euo pipefail -c "cd $folder && $*"
}
as_root() { inside "$1" root:root / "${*:2}"; }
as_user() { inside "$1" 1000:1000 /home/user "${*:2}"; }

mount_proc() {
  mkdir -p "$roots/$1/proc"
  if mountpoint -q "$roots/$1/proc"; then return; fi
  mount -t proc proc "$roots/$1/proc"
  mounted+=("$roots/$1/proc")
}

# The packages of the release $1, in $roots/$1-packages.
build() {
  local release=$1 system=$roots/$1 log=$roots/$1-packages.log
  if [[ ! -e $system/etc/debian_version ]]; then
    debootstrap --variant=minbase "$release" "$system" >"$system.log"
  fi
  mount_proc "$release"
  rm -rf "$system/engram/package"
  mkdir -p "$system/engram/package" "$roots/$release-packages"
  git archive HEAD | tar -x -C "$system/engram/package"
  as_root "$release" "cd /engram/package && bash apps/install_packages.sh ccache dpkg-dev file gzip libopenmpi-dev &&
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache &&
    cmake --preset package -DENGRAM_WERROR=ON -DENGRAM_COMMIT=$(git describe --always --tags) &&
    cmake --build --preset package --parallel $(nproc) --target engram engram_shared &&
    cpack --preset package" >"$log" 2>&1 || fail "$release: making the packages failed, see $log"
  rm -f "$roots/$release-packages"/*
  cp "$system"/engram/package/build/package/*.{deb,tar.gz} "$roots/$release-packages/"
  rm -rf "$system/engram/package"
  (cd "$roots/$release-packages" && du -k -- *)
}

# What ENGRAM_HARDEN promises of each program and library of the release $1.
check_hardening() {
  local folder file package said
  folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-packages.XXXXXX")
  for package in "$roots/$1-packages"/*.deb; do dpkg-deb -x "$package" "$folder"; done
  while IFS= read -r file; do
    said=$(readelf -W -h -l -d --dyn-syms "$file")
    for promised in "Type: *DYN" GNU_RELRO "FLAGS.*NOW" __stack_chk_fail; do
      grep -q "$promised" <<<"$said" || fail "$1: ${file#"$folder"} must be hardened, readelf shows no '$promised'"
    done
    if [[ $file == */bin/engram ]]; then grep -q "_chk@" <<<"$said" || fail "$1: engram must check the sizes of buffers"; fi
  done < <(find "$folder" -type f \( -path '*/bin/*' -o -name '*.so*' \))
  rm -rf "$folder"
}

# Every file of the root $1, but what the package manager keeps for itself.
files_of() {
  (cd "$roots/$1" && find . -xdev \( -path ./proc -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/cache -o \
    -path ./var/log -o -path ./home -o -path ./tmp -o -path ./packages \) -prune -o -printf '%y %p\n' | LC_ALL=C sort)
}

# The commands of README's main job, with the installed program; the training is the trial of 100 steps that it names.
main_job() {
  sed -n 's/^\$engram /engram /p' README.md | sed -E 's|^(engram train .*)$|\1 --steps 100|' >"$roots/$1/home/user/job"
  if (($(wc -l <"$roots/$1/home/user/job") != 5)); then fail "README must have five commands of engram by hand"; fi
  as_user "$1" "bash -euxo pipefail job" >>"$log" 2>&1 || fail "$1: README's commands failed, see $log"
  # shellcheck disable=SC2016  # of the shell in there
  as_user "$1" '[[ -s runs/my-run.html ]] && engram evaluate runs/my-run --data runs/my-data --split test --exact --json' |
    grep -o '"bits_per_byte":[0-9.]*'
}

# Each of its modules is found and loaded, by the program $2 in the root $1, and the plain kernels compute the same to
# three digits.
try_kernels() {
  local level said
  for level in baseline avx2 avx512; do
    said=$(as_user "$1" "ENGRAM_CPU=$level $2 evaluate runs/my-run --data runs/my-data --split test --exact --json 2>&1" || true)
    if [[ $said == *"this machine does not run"* ]]; then
      echo "$level: not on this machine"
    elif [[ $said =~ \"bits_per_byte\":([0-9]\.[0-9]{2}) ]]; then
      echo "$level: ${BASH_REMATCH[1]} bits per byte"
    else
      fail "$1: the kernels $level must be found by $2, got: $said"
    fi
  done
}

use() {
  local release=$1 system=$1-installed packages=$roots/$1-packages before
  before=$roots/$1.files
  if [[ ! -e $roots/$release-fresh/etc/debian_version ]]; then
    debootstrap --variant=minbase "$release" "$roots/$release-fresh" >"$roots/$release-fresh.log"
  fi
  if mountpoint -q "$roots/$system/proc"; then umount "$roots/$system/proc"; fi
  rm -rf "${roots:?}/$system"
  cp -a "$roots/$release-fresh" "$roots/$system"
  mount_proc "$system"
  as_root "$system" "apt-get update -qq && apt-get install -qq --yes --no-install-recommends bible-kjv man-db &&
    useradd --create-home --uid 1000 user && mkdir /packages" >"$log" 2>&1 || fail "$system: packages failed, see $log"
  cp "$packages"/*.deb "$packages"/*.tar.gz "$roots/$system/packages/"
  if as_root "$system" "command -v cc g++ cmake"; then fail "$system must have no compiler, got the above"; fi
  files_of "$system" >"$before"

  say "$release: the program, without a compiler"
  as_root "$system" "apt-get install -qq --yes --no-install-recommends /packages/engram_*.deb" >>"$log" 2>&1 ||
    fail "$system: installing engram failed, see $log"
  as_user "$system" "engram --version"
  bash tests/installed_links.sh "$roots/$system/usr/share/doc/engram" || fail "$system: links of pages must lead somewhere"
  as_user "$system" "bible -f gen1:1-deu34:12 >my.txt"
  main_job "$system"
  try_kernels "$system" engram
  as_root "$system" "man -w engram-train" >/dev/null || fail "$system: engram train must have a page"
  as_root "$system" "man -E UTF-8 --warnings engram-train 2>&1 >/dev/null" | grep . && fail "$system: the page of engram train must have no faults, got the above"
  # shellcheck disable=SC2016  # of the shell in there
  as_user "$system" 'source /usr/share/bash-completion/completions/engram && COMP_WORDS=(engram train --config kjv-q)
    COMP_CWORD=3 && _engram && [[ ${COMPREPLY[*]} == kjv-quick ]]' || fail "$system: bash must complete kjv-quick"
  [[ $(as_user "$system" "bash /usr/share/engram/fetch.sh") == *"fetch.sh NAME makes runs/data/NAME"* ]] ||
    fail "$system: fetch.sh must list data sets"
  if grep -rlaF "/engram/package" "$roots/$system"/usr/{bin/engram,lib/*/libengram*,lib/*/engram,share/engram} 2>/dev/null; then
    fail "$system: what is installed must not name where it was made, got the above"
  fi

  say "$release: the archive, in a folder of the user's"
  as_root "$system" "apt-get purge -qq --yes engram" >>"$log" 2>&1 # its libraries stay
  as_user "$system" "tar -xzf /packages/engram-*.tar.gz"
  try_kernels "$system" "./engram-*/bin/engram"
  [[ $(as_user "$system" "./engram-*/bin/engram configs --names") == *kjv/kjv-quick* ]] ||
    fail "$system: the archive's program must find its configurations"
  as_root "$system" "apt-get autoremove -qq --yes --purge" >>"$log" 2>&1 || fail "$system: purging failed, see $log"
  files_of "$system" >"$before.after"
  if ! diff "$before" "$before.after"; then fail "$system: removed packages must leave nothing, got the above"; fi
  rm -f "$before" "$before.after"

  say "$release: a program of one's own"
  as_root "$system" "apt-get install -qq --yes --no-install-recommends /packages/*.deb openmpi-bin g++ cmake make pkg-config" >>"$log" 2>&1 ||
    fail "$system: installing libengram-dev failed, see $log"
  as_user "$system" "cp -r /usr/share/doc/libengram-dev/examples . && cmake -S examples -B built && cmake --build built &&
    built/circle && built/own_op && built/characters && built/product_key | tail -n 1" >>"$log" 2>&1 || fail "$system: the examples failed, see $log"
  # shellcheck disable=SC2016  # of the shell in there
  as_user "$system" 'g++ -std=c++20 examples/product_key.cpp $(pkg-config --cflags --libs engram) -o facts && ./facts | tail -n 1 &&
    head -c 3000 my.txt | built/perplexity runs/my-run'

  say "$release: two processes, and nothing is left"
  as_user "$system" "mpirun --oversubscribe -n 2 engram evaluate runs/my-run --data runs/my-data --split test --exact --json" \
    2>>"$log" | grep -o '"bits_per_byte":[0-9.]*' || fail "$system: two processes must evaluate a run, see $log"
  as_root "$system" "apt-get purge -qq --yes engram libengram-dev engram-mpi" >>"$log" 2>&1
  if (cd "$roots/$system" && find . -xdev \( -path ./proc -o -path ./home -o -path ./packages \) -prune -o -iname '*engram*' -print |
    grep .); then
    fail "$system: removed packages must leave nothing, got the above"
  fi
}

for release in "${releases[@]}"; do
  log=$roots/$release-installed.log
  if $makes; then
    say "$release: making the packages"
    build "$release"
  fi
  if command -v readelf >/dev/null; then check_hardening "$release"; fi
  if command -v lintian >/dev/null; then
    lintian --fail-on error,warning "$roots/$release-packages"/*.deb
  fi
  use "$release"
done
printf '\ntests/packages.sh: %s passed in %d s\n' "${releases[*]}" "$SECONDS"
