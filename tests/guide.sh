#!/usr/bin/env bash
# Runs the commands that the guide shows, docs/guide/*.md, page after page in one folder, on a small text, and fails where
# one fails. README is read like a page of the guide, the first.
#   bash tests/guide.sh PROGRAM [PAGE ...]     PROGRAM: build/release/apps/engram; PAGE: own-text and so on, else all
# A listing of commands begins with ```sh, and all its lines are run; one that shows what they print begins with
# ```console, and its lines that begin with "$ " are run. Above a listing, each on a line of its own, may stand
#   <!-- run: A => B -->       the test puts B in the place of every A, for instance to train for fewer steps
#   <!-- prints all -->        the other lines of a console's listing must be what the commands print, to the letter
#   <!-- not run: REASON -->   the test leaves the listing out
# Any other listing is no command: one with a line that calls engram or autograd_tour is refused, so that none is
# forgotten.
# The test guide of ctest.
set -euo pipefail
export LC_ALL=C.UTF-8 OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

program=$(realpath -- "${1:?tests/guide.sh: which program?}")
shift
if [[ $("$program" --version) != *SentencePiece* ]]; then
  echo "tests/guide.sh: skipped, as this build has no SentencePiece: the guide begins with subwords"
  exit 77
fi
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
guide=${ENGRAM_GUIDE:-$root/docs/guide}
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-guide.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# In this order, as pages go on with what those before have made; then all others.
first=(first-run own-text own-model comparing-runs)
pages=("$@")
if ((${#pages[@]} == 0)); then
  pages=(README)
  for page in "${first[@]}"; do
    if [[ -e $guide/$page.md ]]; then pages+=("$page"); fi
  done
  for file in "$guide"/*.md; do
    page=$(basename "$file" .md)
    if [[ " ${first[*]} " != *" $page "* ]]; then pages+=("$page"); fi
  done
fi

# What the pages' commands find: the program; configurations, small.toml being the quick start's in small; and a text,
# prose of this project below a line of all capitals, so that a model knows each.
mkdir -p "$folder/bin" "$folder/work/runs/kjv-quick-text" "$folder/listings"
ln -s "$program" "$folder/bin/engram"
ln -s "$(dirname "$program")/autograd_tour" "$folder/bin/autograd_tour"
ln -s "$root/apps" "$folder/work/apps"
export PATH="$folder/bin:$PATH"
cd -- "$folder/work"
{ printf '%s\n' {A..Z} && cat "$root"/docs/mathematics/*.md; } | tr -c 'A-Za-z .,\n' ' ' | tr -s ' \n' >"$folder/prose"
head -c 60000 "$folder/prose" >my.txt
for split in train:1,800 valid:801,870 test:871,940; do # what apps/quickstart.sh makes of its text
  sed -n "${split#*:}p" my.txt >"runs/kjv-quick-text/${split%:*}.txt"
done
sed -E -e 's/^width = .*/width = 16/' -e 's/^slots = .*/slots = 8/' -e 's/^batch = .*/batch = 4/' \
  -e 's/^steps = .*/steps = 12/' -e 's/^warmup = .*/warmup = 2/' -e 's/^validate_every = .*/validate_every = 6/' \
  apps/configs/kjv/kjv-quick.toml >small.toml
mkdir my-articles
for ((article = 0; article < 40; article++)); do # a file each
  sed -n "$((article * 10 + 1)),$((article * 10 + 10))p" my.txt >"my-articles/$article.txt"
done

# Of each listing of a page: PAGE.NUMBER.commands, PAGE.NUMBER.shown with what a console prints, and PAGE.NUMBER.marks
# with its line and the marks above it.
split_page() {
  awk -v start="$folder/listings/$1" '
    function close_listing() { inside = 0; close(commands); close(shown); close(notes) }
    !inside && /^```/ {
      kind = substr($0, 4)
      inside = 1
      number++
      commands = sprintf("%s.%03d.commands", start, number)
      shown = sprintf("%s.%03d.shown", start, number)
      notes = sprintf("%s.%03d.marks", start, number)
      printf "" >commands
      printf "" >shown
      print NR >notes
      if (kind != "sh" && kind != "console") print "other" >notes
      else printf "%s", marks >notes
      marks = ""
      next
    }
    inside && /^```/ { close_listing(); next }
    inside && kind == "sh" { print >commands }
    inside && kind == "console" && /^\$ / { print substr($0, 3) >commands; next }
    inside && kind == "console" { print >shown }
    inside && kind != "sh" && kind != "console" &&
      /^(\$ )?([A-Z_]+=[^ ]* )*([^ ]*\/)?\$?(engram|autograd_tour) / { print >commands }
    !inside && /^<!-- ((not run|run): .*|prints all) -->$/ { marks = marks $0 "\n"; next }
    !inside { marks = "" }
  ' "$2"
}

fail() {
  printf '\ntests/guide.sh: %s:%s: %s\n' "$1" "$2" "$3" >&2
  faults=$((faults + 1))
}

# shellcheck disable=SC2016  # fences are no commands
# That it would tell: a command that fails, a listing that is not marked, a replacement of what is not there.
if [[ -z ${ENGRAM_GUIDE:-} ]]; then
  mkdir "$folder/broken"
  printf '```sh\nengram keys no-family\n```\n' >"$folder/broken/fails.md"
  printf '```\nengram keys\n```\n' >"$folder/broken/unmarked.md"
  printf '<!-- run: recurrent => product_key -->\n```sh\nengram keys\n```\n' >"$folder/broken/stale.md"
  printf '<!-- prints all -->\n```console\n$ echo a b\na  b\n```\n' >"$folder/broken/other.md"
  printf '```console\n$ engram keys\nmodel\n```\n' >"$folder/broken/good.md"
  printf '<!-- prints all -->\n```console\n$ echo a\na\n$ echo b\nb\n```\n' >>"$folder/broken/good.md"
  for page in fails unmarked stale other good; do
    code=0
    ENGRAM_GUIDE=$folder/broken bash "$root/tests/guide.sh" "$program" "$page" >/dev/null 2>&1 || code=$?
    if [[ $page == good && $code != 0 || $page != good && $code != 1 ]]; then
      echo "tests/guide.sh: the page $page.md of its own must be told from a good one, got exit code $code" >&2
      exit 1
    fi
  done
fi

run=0
same=0
faults=0
left_out=""
for page in "${pages[@]}"; do
  file=$guide/$page.md
  if [[ $page == README ]]; then file=$root/README.md; fi
  split_page "$page" "$file"
  broken=0 # what follows on a page often needs what failed
  for notes in "$folder/listings/$page".*.marks; do
    if [[ ! -e $notes ]] || ((broken)); then continue; fi
    mapfile -t marks <"$notes"
    line=${marks[0]}
    commands=$(<"${notes%.marks}.commands")
    if [[ ${marks[1]:-} == other ]]; then
      if [[ -n $commands ]]; then
        fail "$page" "$line" "a listing of commands must begin with \`\`\`sh or \`\`\`console, so that it is run; it has: ${commands%%$'\n'*}"
      fi
      continue
    fi
    reason=""
    compared=0
    for mark in "${marks[@]:1}"; do
      mark=${mark% -->}
      if [[ $mark == "<!-- prints all" ]]; then
        compared=1
        continue
      fi
      if [[ $mark == "<!-- not run: "* ]]; then
        reason=${mark#<!-- not run: }
        continue
      fi
      mark=${mark#<!-- run: }
      from=${mark%% => *}
      to=${mark#* => }
      if [[ $commands != *"$from"* ]]; then
        fail "$page" "$line" "the listing must have what is to be replaced, got no '$from' in it"
      fi
      commands=${commands//"$from"/"$to"}
    done
    if [[ -n $reason ]]; then
      left_out+="  $page:$line: $reason"$'\n'
      continue
    fi
    if ! bash -euo pipefail -c "$commands" >"$folder/said" 2>&1 </dev/null; then
      fail "$page" "$line" "this failed:"
      printf '%s\n' "$commands" | sed 's/^/  /' >&2
      echo "it said:" >&2
      tail -n 15 "$folder/said" | sed 's/^/  | /' >&2
      broken=1
      continue
    fi
    if ((compared)) && ! diff "${notes%.marks}.shown" "$folder/said" >"$folder/difference"; then
      fail "$page" "$line" "the listing must be what its commands print (<), got (>):"
      sed 's/^/  | /' "$folder/difference" >&2
      continue
    fi
    run=$((run + 1))
    same=$((same + compared))
  done
done

printf 'Listings of %d pages: %d run, of them %d with what they print, %d not:\n%s' "${#pages[@]}" "$run" "$same" "$(grep -c . <<<"$left_out" || true)" "$left_out"
if ((faults > 0 || run == 0)); then
  printf 'tests/guide.sh: %d faults\n' "$faults" >&2
  exit 1
fi
