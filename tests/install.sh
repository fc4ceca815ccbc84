#!/usr/bin/env bash
# What a build folder installs, used from another place than it was installed to: the program finds its configurations, and
# nothing names the build folder or the sources. The test install of ctest; tests/packages.sh tries the packages.
#   bash tests/install.sh BUILD_FOLDER
set -euo pipefail
export LC_ALL=C.UTF-8 OMP_WAIT_POLICY=passive

build=$(realpath -- "${1:?tests/install.sh: which build folder?}")
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-install.XXXXXX")
trap 'rm -rf "$folder"' EXIT
fail() {
  printf 'tests/install.sh: %s\n' "$1" >&2
  exit 1
}

for component in program library processes; do
  DESTDIR="" cmake --install "$build" --prefix "$folder/first" --component "$component" >"$folder/said" 2>&1 ||
    fail "installing the component $component failed: $(<"$folder/said")"
  if grep -q Warning "$folder/said"; then fail "there must be no warning, got $(<"$folder/said")"; fi
done
mv "$folder/first" "$folder/moved"
# But for the program with kernels for cards, whose lines profilers show.
kernels=()
if [[ $("$folder/moved/bin/engram" --version) == *cuda* ]]; then kernels=(--exclude-dir bin); fi
if grep -rlaF "${kernels[@]}" -e "$root" -e "$build" -e "$folder/first" "$folder/moved"; then
  fail "what is installed must not name where it was made, got the above"
fi
for file in bin/engram share/engram/configs/kjv/kjv-quick.toml share/engram/data_sets.txt share/engram/gdb/engram.py \
  share/bash-completion/completions/engram share/zsh/vendor-completions/_engram \
  share/fish/vendor_completions.d/engram.fish share/doc/engram/docs/guide/installing.md; do
  [[ -s $folder/moved/$file ]] || fail "'$file' must be installed"
done
bash "$root/tests/installed_links.sh" "$folder/moved/share/doc/engram" || fail "links of installed pages must lead somewhere"
# What only the sources have is not what README begins with.
if grep -nE 'quickstart\.sh|install_packages\.sh|tests/run\.sh|build/program|\$engram' "$folder/moved/share/doc/engram/README.md"; then
  fail "the README that is installed must name nothing of the sources alone, got the above"
fi
pages=("$folder"/moved/share/man/man1/engram*)
commands=$("$folder/moved/bin/engram" --help | grep -c '^  [a-z]')
((${#pages[@]} == commands + 1)) || fail "there must be a page of each of $commands commands, got ${#pages[@]}"

# A reader that stops at what it looks for would end the writer.
says() { [[ $("${@:2}") == *"$1"* ]]; }
cd -- "$folder"
says "kjv-quick (" moved/bin/engram count --config kjv-quick --vocab 100 || fail "a configuration must be found by its name"
if moved/bin/engram count --config kjv-quik 2>said; then fail "another name must be refused"; fi
grep -q 'the nearest is kjv/kjv-quick' said || fail "a refusal must have the nearest name, got $(<said)"
# One that was put beside the folders, of the name of one in a folder, and one of its own.
configs=moved/share/engram/configs
for name in kjv-quick mine; do sed '1i # Put there.' "$configs/kjv/kjv-quick.toml" >"$configs/$name.toml"; done
[[ $(moved/bin/engram configs --filter i) == "  kjv-quick
      Put there."*"
  mine
      Put there."*"

all-attention:
"* ]] || fail "configurations in no folder must be listed first, got $(moved/bin/engram configs --filter i | head -n 20)"
says "Put there." moved/bin/engram configs kjv-quick || fail "the configuration in no folder must be meant by its whole name"
says "mine (" moved/bin/engram count --config mine --vocab 100 || fail "a configuration in no folder must be found by its name"
says "bash $folder/moved/share/engram/fetch.sh NAME makes" bash moved/share/engram/fetch.sh || fail "fetch.sh must say its path"
says "bash apps/fetch.sh NAME makes" bash "$root/apps/fetch.sh" || fail "fetch.sh of the sources must say its path"
rm -r moved/share/engram
if moved/bin/engram count --config kjv-quick 2>said; then fail "without configurations a name must be refused"; fi
grep -qF "there are none in '$folder/moved/share/engram/configs'" said || fail "a refusal must say where it looked, got $(<said)"
