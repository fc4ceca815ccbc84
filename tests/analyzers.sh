#!/usr/bin/env bash
# Programs that look for faults without a test for each:
#   bash tests/analyzers.sh [TOOL ...]     tidy gcc valgrind (all)
#     tidy       clang-tidy with the checks of .clang-tidy, over every source of core, autograd, nn, cpu, cuda and apps but
#                those that only nvcc or another processor compiles
#     gcc        GCC's -fanalyzer, over core, autograd, nn and apps: it follows paths of one function into another. Made
#                for C, it says of C++ what is not so: below stands what, with the reason
#     valgrind   everything that tests of kills make, once, under memcheck (tests/faults/valgrind.py)
# Hours of one core, so tests/nightly.sh calls it. ENGRAM_ANALYZED="FILE ..." for some sources, ENGRAM_CLANG_TIDY=PROGRAM
# for another clang-tidy. Exit code 1: something new was found.
set -euo pipefail
export LC_ALL=C.UTF-8 OMP_WAIT_POLICY=passive

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
tools=("$@")
if ((${#tools[@]} == 0)); then tools=(tidy gcc valgrind); fi
for tool in "${tools[@]}"; do
  if [[ ! $tool =~ ^(tidy|gcc|valgrind)$ ]]; then
    echo "tests/analyzers.sh: a tool must be tidy, gcc or valgrind, got '$tool'" >&2
    exit 2
  fi
done
logs=build/analyzers
# What GCC's analyzer says, without line numbers, and why it is not so.
known_to_gcc=(
  # A unique_ptr does not call its deleter for nothing, and closes what it holds.
  'autograd/tape.hpp: warning: dereference of NULL ‘node’ [CWE-476] [-Wanalyzer-null-dereference]'
  'apps/tape/graphviz.cpp: warning: leak of ‘tmpfile()’ [CWE-401] [-Wanalyzer-malloc-leak]'
)
mkdir -p "$logs"

# compile_commands FOLDER COMPILER [OPTION ...]: how every source is compiled by itself; nothing is built.
compile_commands() {
  cmake -S . -B "$1" -G Ninja -DCMAKE_CXX_COMPILER="$2" -DCMAKE_BUILD_TYPE=Release -DENGRAM_JOIN=OFF -DENGRAM_PRECOMPILE=OFF \
    -DENGRAM_CUDA=OFF -DENGRAM_MPI=OFF -DENGRAM_TESTS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "${@:3}" >"$logs/configure"
}
# listed FOLDER PATTERN ...: sources that are compiled there.
listed() {
  git ls-files "${@:2}" | while read -r file; do
    if grep -qF "\"file\": \"$root/$file\"" "$1/compile_commands.json"; then echo "$file"; fi
  done
}

found=0
for tool in "${tools[@]}"; do
  began=$SECONDS
  chosen=('core/*.cpp' 'autograd/*.cpp' 'nn/*.cpp' 'apps/*.cpp')
  if [[ $tool == tidy ]]; then chosen+=('cpu/*.cpp' 'cuda/*.cpp'); fi
  if [[ -n ${ENGRAM_ANALYZED:-} ]]; then read -ra chosen <<<"$ENGRAM_ANALYZED"; fi
  case $tool in
    tidy)
      compile_commands build/tidy clang++ -DENGRAM_SIMULATED=ON
      mapfile -t files < <(listed build/tidy "${chosen[@]}")
      # A clang-tidy that comes without Clang has no <omp.h>: GCC's, after all others.
      check=("${ENGRAM_CLANG_TIDY:-clang-tidy}" -p build/tidy --quiet
        "--extra-arg=-idirafter$(g++ -print-file-name=include)")
      printf '%s\n' "${files[@]}" |
        xargs -P "$(nproc)" -n 4 "${check[@]}" >"$logs/tidy" 2>"$logs/tidy.errors" || true
      # A source that was not read is no source without faults.
      if grep -E '^Error while processing|file not found' "$logs/tidy.errors"; then found=1; fi
      sort -u <(grep -hE '(warning|error): ' "$logs/tidy") >"$logs/tidy.found" || true
      ;;
    gcc)
      compile_commands build/analyzer g++ -DENGRAM_SIMULATED=OFF
      mapfile -t files < <(listed build/analyzer "${chosen[@]}")
      # -O1: more is inlined, and the analyzer looks at less. What it says of the C++ library's own headers is left out: it
      # does not know who owns their memory.
      # Of some sources it takes 24 GB and more: what needs over 3 GB or five minutes is left out, by name.
      analyze() { xargs -P "$(nproc)" -d '\n' -n 1 bash -c >"$logs/gcc" 2>&1 || true; }
      python3 - build/analyzer/compile_commands.json "${files[@]}" <<'PYTHON' | analyze
import json, re, sys
wanted = {f"/{name}" for name in sys.argv[2:]}
for entry in json.load(open(sys.argv[1])):
    if any(entry["file"].endswith(name) for name in wanted):
        command = re.sub(r" -o \S+ -c ", " -o /dev/null -c ", entry["command"])
        command = f"{command.replace(' -O3 ', ' -O1 ')} -fanalyzer -fdiagnostics-plain-output"
        print(f"ulimit -v 3000000; cd {entry['directory']} && timeout 300 {command} || echo left out: {entry['file']}")
PYTHON
      if grep -E ' error: ' "$logs/gcc"; then found=1; fi
      sed -n "s|^left out: $root/||p" "$logs/gcc" >"$logs/gcc.left_out"
      printf 'gcc: left out, over 3 GB or five minutes: %s\n' "$(paste -sd ' ' "$logs/gcc.left_out")"
      # Made for C, it does not see how C++ makes objects, who owns the library's memory, or that operator new throws: what
      # it says of values without a name, of names of the library, and of what operator new returns is left out. ‘0’ is the
      # first element of a vector, which it takes for one that has none.
      strange='‘(<unknown>|<anonymous>[^’]*|__[^’]*|operator new\([0-9]+\)|[^’]*std::[^’]*|\*?_[0-9]+[^’]*|0)’'
      grep -hE '\[-Wanalyzer' "$logs/gcc" | grep -v '^/usr/' | grep -vE "$strange" |
        sed -E "s|^$root/||; s|:[0-9]+:[0-9]+:|:|" | sort -u >"$logs/gcc.seen" || true
      grep -vxFf <(printf '%s\n' "${known_to_gcc[@]}") "$logs/gcc.seen" >"$logs/gcc.found" || true
      ;;
    valgrind)
      if [[ -z ${ENGRAM_PORTABLE:-} ]]; then
        cmake --preset portable -DENGRAM_CUDA=OFF -DENGRAM_SIMULATED=OFF >"$logs/configure"
        cmake --build build/portable --parallel "$(nproc)" --target engram
      fi
      files=(all)
      : >"$logs/valgrind.found"
      python3 tests/faults/valgrind.py "${ENGRAM_PORTABLE:-build/portable/apps/engram}" | tee "$logs/valgrind" ||
        echo "tests/faults/valgrind.py found something" >"$logs/valgrind.found"
      ;;
  esac
  cat "$logs/$tool.found"
  printf '%-9s %4d sources, %d minutes, %d new findings\n' "$tool" "${#files[@]}" $(((SECONDS - began) / 60)) \
    "$(wc -l <"$logs/$tool.found")"
  if [[ -s $logs/$tool.found ]]; then found=1; fi
done
exit "$found"
