#!/usr/bin/env bash
# What takes too long for every day, in one call; .ci/run comes first. Five to six hours on two slow cores.
#   bash tests/nightly.sh [PART ...]
#     alone        every source and every header compiled by itself, warnings as errors; exercises as learners find them
#     portable     the portable program with all its modules, with oneDNN and without; a project that includes this one;
#                  libengram.so and its examples, built and installed in every way, 20 minutes by estimate
#     tools        pages of long runs in a browser, a minute; the whole page on debuggers typed into gdb, in a build of its
#                  own (preset teach); what kernels cost, in another one (preset cost)
#     ranks        several processes: a hundred runs that lose one, all families on the device simulated, a table that one
#                  may not hold, two hosts in network namespaces, what is predicted of a slow link against what they do;
#                  where MPI was found. Half an hour
#     kills        tests/kill.sh: a thousand kills at random moments of everything that is made, which goes on to the same bits
#     faults       tests/faults.sh: every call on files and memory fails in turn, and the power goes after every change;
#                  two million steps of every family, whose memory must stay flat
#     studies      scripts of the papers' studies with two steps each, which judge their claims and draw their figures:
#                  three minutes of processor time; pictures of the guide
#     asan         every test, slow ones too, under AddressSanitizer with UndefinedBehaviorSanitizer; an hour and a half
#     tsan         the same under ThreadSanitizer; whole runs of ranks that are threads are among them (alone:
#                  tests/sanitized.sh tsan apps_ranks)
#     fuzz         libFuzzer feeds every reader of what others wrote, 20 minutes in all, from tests/fuzz/corpus on
#                  (tests/fuzz/run.sh); half an hour with its build, by estimate
#     analyzers    clang-tidy, GCC's analyzer and valgrind (tests/analyzers.sh); two hours by estimate
#     packages     tests/packages.sh: packages of Debian 12 and 13, made and tried in fresh systems; as root, where debootstrap
#                  is installed; half an hour by estimate
#     matrix       tests/matrix.sh: Debian 12 and 13, GCC and Clang, aarch64; as root, where debootstrap is installed. Each
#                  system is a part of its own, bookworm-gcc and so on, half an hour or more
# ENGRAM_NIGHT=FILE keeps what passed, by commit: a night that was broken off goes on after the last part that passed, and
# its table has all of them. Of a tree with changes nothing counts the next time.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
parts=("$@")
if ((${#parts[@]} == 0)); then
  parts=(alone portable tools ranks kills faults studies asan tsan fuzz analyzers packages matrix)
fi
systems='bookworm-gcc bookworm-clang trixie-gcc trixie-clang trixie-aarch64'
read -ra parts <<<"$(printf '%s ' "${parts[@]}" | sed "s/\bmatrix\b/$systems/g")"
for part in "${parts[@]}"; do
  if [[ ! $part =~ ^(alone|portable|tools|ranks|kills|faults|studies|asan|tsan|fuzz|analyzers|packages)$ &&
        " $systems " != *" $part "* ]]; then
    echo "tests/nightly.sh: a part must be alone, portable, tools, ranks, kills, faults, studies, asan, tsan, fuzz," \
      "analyzers, packages, matrix or a system of it ($systems), got '$part'" >&2
    exit 2
  fi
done
source tests/parts.sh
bash apps/install_packages.sh

# What passed: lines of commit, part, and a row of the table.
night=${ENGRAM_NIGHT:-$parts_scratch/night}
commit=$(git rev-parse HEAD)
git diff --quiet HEAD || commit+=-changed-$$-$(date +%s)
touch -- "$night"
rows_of() { awk -F '\t' -v commit="$commit" -v part="$1" '$1 == commit && $2 == part' "$night" | cut -f 3-; }
keep_rows() {
  close_part
  tail -n "+$((rows_before + 1))" "$ENGRAM_PARTS" | sed "s/^/$commit\t$1\t/" >>"$night"
}

for part in "${parts[@]}"; do
  if [[ -n $(rows_of "$part") ]]; then
    printf '\n== %s: passed at this commit (%s)\n' "$part" "$night"
    rows_of "$part" >>"$ENGRAM_PARTS"
    continue
  fi
  close_part
  rows_before=$(wc -l <"$ENGRAM_PARTS")
  case $part in
    alone)
      # Neither joined nor with headers compiled before: only such a build sees that a source lacks an #include.
      begin_part "Every source and header by itself (preset alone)"
      cmake --preset alone
      cmake --build build/alone --parallel "$(nproc)"
      ctest --test-dir build/alone --output-on-failure --no-tests=error -L nightly
      begin_part "Exercises as learners find them (tests/exercises)"
      cmake --build build/alone --parallel "$(nproc)" --target exercises
      # None is solved, and each says where to begin or what is wrong.
      said=$(build/alone/tests/exercises || true)
      if [[ $(grep -cE '^  (where|hint) ' <<<"$said") != 14 ]]; then
        printf 'tests/nightly.sh: 14 exercises must say where to begin, got\n%s\n' "$said" >&2
        exit 1
      fi
      ;;
    portable)
      begin_part "The portable program with all its modules (preset portable)"
      cmake --preset portable -DENGRAM_WERROR=ON -DENGRAM_CUDA=OFF
      cmake --build build/portable --parallel "$(nproc)" --target engram engram_tests_ops
      build/portable/tests/engram_tests_ops
      begin_part "Ops, portable, without oneDNN, with all modules (preset without-onednn)"
      cmake --preset without-onednn -DENGRAM_WERROR=ON "-DENGRAM_CPU_LEVELS=avx2;avx512"
      cmake --build build/without-onednn --parallel "$(nproc)" --target engram_tests_ops
      build/without-onednn/tests/engram_tests_ops
      ENGRAM_CPU=baseline build/without-onednn/tests/engram_tests_ops
      begin_part "A project that includes Engram (tests/subproject)"
      cmake -S tests/subproject -B build/subproject -G Ninja
      cmake --build build/subproject --parallel "$(nproc)"
      build/subproject/uses_engram
      begin_part "libengram.so, installed, and its examples (tests/library.sh)"
      bash apps/install_packages.sh clang pkg-config
      ENGRAM_PROGRAM=build/portable/apps/engram bash tests/library.sh -DENGRAM_NATIVE=OFF
      ;;
    tools)
      begin_part "Pages of eight runs of 100,000 reports in a browser (tests/browser)"
      bash apps/install_packages.sh chromium
      cmake --preset program
      cmake --build build/program --parallel "$(nproc)" --target engram
      python3 tests/browser/check.py build/program/apps/engram --large
      begin_part "The page on debuggers, typed into gdb (preset teach)"
      bash apps/install_packages.sh gdb
      cmake --preset teach
      cmake --build --preset teach --parallel "$(nproc)"
      ctest --preset teach --no-tests=error
      begin_part "What kernels cost, counted (preset cost)"
      cmake --preset cost -DENGRAM_WERROR=ON
      cmake --build --preset cost --parallel "$(nproc)"
      bash tests/cost.sh build/cost/apps/engram
      ;;
    ranks)
      begin_part "Several processes (preset program)"
      bash apps/install_packages.sh openmpi-bin libopenmpi-dev
      cmake --preset program -DENGRAM_MPI=ON -DENGRAM_SIMULATED=ON
      cmake --build build/program --parallel "$(nproc)" --target engram
      bash tests/ranks.sh "$root/build/program/apps/engram" 100
      bash tests/ranks_on_two_hosts.sh "$root/build/program/apps/engram"
      bash tests/rank_rates.sh "$root/build/program/apps/engram"
      ;;
    kills | faults)
      begin_part "Kills, failing calls, power loss (preset release): $part"
      bash apps/install_packages.sh openmpi-bin libopenmpi-dev
      cmake --preset release
      cmake --build build/release --parallel "$(nproc)" --target engram engram_faults
      # A disk of memory, where there is one: neither depends on how long a flush takes.
      if [[ -w /dev/shm ]]; then disk=/dev/shm; else disk=${TMPDIR:-/tmp}; fi
      if [[ $part == kills ]]; then
        TMPDIR=$disk bash tests/kill.sh 1000
      else
        TMPDIR=$disk bash tests/faults.sh
        TMPDIR=$disk python3 tests/faults/long_runs.py 2000000 build/release/apps/engram
      fi
      ;;
    studies)
      begin_part "Scripts of the papers' studies (tests/studies.sh), pictures of the guide (tests/figures.sh)"
      bash apps/install_packages.sh bible-kjv
      cmake --preset program
      cmake --build build/program --parallel "$(nproc)" --target engram
      studies=$(mktemp -d "${TMPDIR:-/tmp}/engram-studies.XXXXXX")
      bash tests/studies.sh build/program/apps/engram "$studies/studies"
      mkdir "$studies/pictures"
      bash tests/figures.sh build/program/apps/engram "$studies/figures" "$studies/pictures"
      rm -rf -- "$studies"
      ;;
    asan | tsan)
      close_part
      bash tests/sanitized.sh "$part" all
      close_part
      ;;
    fuzz)
      begin_part "Readers of what others wrote, fed by libFuzzer (preset fuzz)"
      bash apps/install_packages.sh clang libclang-rt-dev libomp-dev
      ENGRAM_FUZZ_JOBS=$(nproc) bash tests/fuzz/run.sh 20
      ;;
    analyzers)
      begin_part "Analyzers: clang-tidy, GCC, valgrind (tests/analyzers.sh)"
      bash apps/install_packages.sh clang-tidy valgrind
      bash tests/analyzers.sh
      ;;
    packages)
      begin_part "Packages of Debian 12 and 13 in fresh systems"
      bash apps/install_packages.sh debootstrap lintian
      bash tests/packages.sh
      ;;
    bookworm-* | trixie-*)
      begin_part "Tests in a fresh Debian (tests/matrix.sh): $part"
      bash tests/matrix.sh "$part"
      ;;
  esac
  keep_rows "$part"
done
end_parts 0
