#!/usr/bin/env bash
# libengram.so as other projects use it: built, installed, moved; its examples (apps/examples) built against the installed
# package by CMake and pkg-config, with GCC and Clang, and from the sources by FetchContent, warnings as errors, and run; and
# what the library exports and what is installed.
#   bash tests/library.sh [CMAKE_OPTION ...]     for instance: bash tests/library.sh -DENGRAM_NATIVE=OFF
# Needs a run for the perplexity: the program build/release/apps/engram, or ENGRAM_PROGRAM, makes a small one.
# tests/nightly.sh runs it with the portable library, which takes the place of the one of this machine.
set -euo pipefail
export LC_ALL=C.UTF-8 OMP_WAIT_POLICY=passive

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
program=$(realpath -- "${ENGRAM_PROGRAM:-build/release/apps/engram}")
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-library.XXXXXX")
trap 'rm -rf "$folder"' EXIT
options=(-G Ninja -DENGRAM_CUDA=OFF -DENGRAM_WERROR=ON "$@")
strict="-Wall -Wextra -Wpedantic -Werror"
compilers=(g++ clang++)

fail() {
  printf 'tests/library.sh: %s\n' "$1" >&2
  exit 1
}
say() { printf '\n== %s\n' "$1"; }

say "Building and installing"
cmake -S . -B build/library "${options[@]}" -DENGRAM_LIBRARY=ON -DENGRAM_APPS=OFF -DENGRAM_TESTS=OFF >"$folder/configure"
cmake --build build/library --parallel "$(nproc)"
DESTDIR="" cmake --install build/library --prefix "$folder/first" >"$folder/installed"
[[ ! -e $folder/first/bin ]] || fail "the library must install no program, got $(ls "$folder/first/bin")"
# It is used where it was not installed to, and its build folder is not there to fall back on.
mv "$folder/first" "$folder/moved"
prefix=$folder/moved
if grep -rIl -e "$folder/first" -e "$root" "$prefix"; then fail "what is installed must not name where it was made, got the above"; fi
mv build/library build/library-aside
trap 'mv "$root/build/library-aside" "$root/build/library"; rm -rf "$folder"' EXIT
library=$(find "$prefix" -name 'libengram.so')
lib=$(dirname "$library")

say "What it exports"
nm -DC --defined-only "$library" | cut -d' ' -f3- >"$folder/exported"
foreign=$(grep -vE '^((typeinfo|typeinfo name|vtable|VTT|guard variable|non-virtual thunk|virtual thunk|reference temporary #[0-9]+) (for|to) )?(.* )?engram::|^engram_interface_[0-9a-f]+$' \
  "$folder/exported" || true)
[[ -z $foreign ]] || fail "the library must export names of engram alone, got:"$'\n'"$foreign"
hidden=$(grep -E '^([a-z ]+ for )?engram::(cpu::|data::|TrainedModel|parse_run_config)[^ (]*(\(|$)' "$folder/exported" || true)
[[ -z $hidden ]] || fail "the library must hide what engram.hpp does not show, got:"$'\n'"$hidden"
for shown in 'engram::Run::open' 'engram::Tape::backward' 'engram::make_optimizer' 'typeinfo for engram::FileError'; do
  grep -qF "$shown" "$folder/exported" || fail "the library must export $shown"
done
echo "$(wc -l <"$folder/exported") names, all of engram"
soname=$(objdump -p "$library" | awk '/SONAME/ { print $2 }')
[[ $soname == libengram.so.0.1 ]] || fail "the name of the library must be libengram.so.0.1, got '$soname'"
if grep -rnE '#include <(fmt|nlohmann|Eigen|CLI|toml|dnnl|omp)' "$prefix/include"; then
  fail "headers that are installed must need no other library, got the above"
fi

say "A small run"
tr -c 'A-Za-z .,\n' ' ' <docs/mathematics/product-key.md | tr -s ' \n' >"$folder/text"
{ printf '%s\n' {A..Z} {a..z} && sed -n 1,200p "$folder/text"; } >"$folder/train.txt"
sed -n 201,240p "$folder/text" >"$folder/valid.txt"
sed -n 241,280p "$folder/text" >"$folder/test.txt"
"$program" prepare --train "$folder/train.txt" --valid "$folder/valid.txt" --test "$folder/test.txt" --out "$folder/data" \
  >/dev/null
"$program" train --config apps/configs/kjv/kjv-quick.toml --data "$folder/data" --out "$folder/run" --steps 3 \
  --set model.width=16 --set model.slots=8 --set training.batch=4 2>"$folder/said" >/dev/null
"$program" evaluate "$folder/run" --data "$folder/data" --split test --exact --json >"$folder/evaluated"

# All of them, in a folder; the perplexity is that of the command: e to the mean loss.
run_examples() {
  local example expected got
  for example in circle product_key characters own_op; do
    "$1/$example" >"$folder/said" 2>"$folder/warned" ||
      fail "the example $example must end well, it said: $(cat "$folder/said" "$folder/warned")"
    # For instance that kernels for this machine could not be loaded.
    [[ ! -s $folder/warned ]] || fail "the example $example must have nothing to warn of, got: $(<"$folder/warned")"
    tail -n 1 "$folder/said"
  done
  expected=$(sed -E 's/.*"nll":([0-9.e+-]+).*/\1/' "$folder/evaluated" | awk '{ printf "%.4f", exp($1) }')
  got=$("$1/perplexity" "$folder/run" <"$folder/test.txt")
  echo "$got"
  [[ $got == *" perplexity $expected" ]] || fail "the perplexity must be $expected, as engram evaluate says, got '$got'"
  if "$1/perplexity" "$folder/none" </dev/null 2>"$folder/said"; then fail "a run that is not there must be an error"; fi
  grep -q "$folder/none" "$folder/said" || fail "the error must name the run, got: $(<"$folder/said")"
}

for compiler in "${compilers[@]}"; do
  command -v "$compiler" >/dev/null || fail "$compiler must be there"
  say "$compiler, find_package"
  cmake -S apps/examples -B "$folder/$compiler-found" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="$strict" >"$folder/configure"
  cmake --build "$folder/$compiler-found" --parallel "$(nproc)"
  run_examples "$folder/$compiler-found"

  say "$compiler, pkg-config, names of its own hidden, folders named as the library's"
  mkdir -p "$folder/$compiler-pkg" "$folder"/own/{core,autograd,nn}
  echo '#error "a header of the program was taken for one of the library"' |
    tee "$folder/own/core/"{error,tensor}.hpp "$folder/own/autograd/tape.hpp" "$folder/own/nn/module.hpp" >/dev/null
  flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs engram)
  for example in circle product_key characters own_op perplexity; do
    # shellcheck disable=SC2086  # flags are words
    "$compiler" -std=c++20 -O1 $strict -fvisibility=hidden -I"$folder/own" "apps/examples/$example.cpp" $flags -Wl,-rpath,"$lib" \
      -o "$folder/$compiler-pkg/$example"
  done
  run_examples "$folder/$compiler-pkg"
done

# As extensions of Python load it: the library's names are for that extension alone.
if command -v python3 >/dev/null; then
  say "Loaded by a program that knows nothing of it"
  # shellcheck disable=SC2086  # flags are words
  g++ -std=c++20 -O1 -shared -fPIC -Dmain=learn_circle apps/examples/circle.cpp $flags -Wl,-rpath,"$lib" \
    -o "$folder/extension.so"
  python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1])._Z12learn_circlev())' "$folder/extension.so" \
    >"$folder/said" 2>&1 || fail "the extension must end well, it said: $(<"$folder/said")"
  if grep -q warning "$folder/said"; then fail "the extension must have nothing to warn of, got: $(<"$folder/said")"; fi
  tail -n 1 "$folder/said"
fi

mv build/library-aside build/library
trap 'rm -rf "$folder"' EXIT
# FetchContent adds a folder as add_subdirectory does; here the library is that of this machine, whatever the package is.
say "FetchContent, warnings as errors in all of it"
cmake -S apps/examples -B build/examples -G Ninja -DENGRAM_CUDA=OFF -DENGRAM_FROM=FetchContent -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS="$strict" >"$folder/configure"
cmake --build build/examples --parallel "$(nproc)"
seen=$(ninja -C build/examples -t commands circle | grep -F apps/examples/circle.cpp | grep -oE -- '-(I|isystem) ?[^ ]+' | sed -E 's/^-(I|isystem) ?//')
[[ -n $seen ]] || fail "the example circle must be compiled with a folder of headers, got none"
for place in $seen; do
  [[ $(ls "$place") == engram ]] || fail "programs must see headers in engram/ alone, got in $place: $(ls "$place")"
  diff -r "$place/engram" "$prefix/include/engram" || fail "programs must see what is installed, got the above"
done
run_examples "$root/build/examples"
