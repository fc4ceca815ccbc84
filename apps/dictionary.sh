#!/usr/bin/env bash
# Makes data sets of 31.7 MB of English from the Debian package dict-gcide: the GNU Collaborative International Dictionary
# (Webster's of 1913, with later additions), free under the GPL, version 2 or later.
#   bash apps/dictionary.sh KIND...   makes runs/data/dictionary-KIND, a folder for engram train --data
#     characters    a token is a byte
#     subwords      8000 byte pairs
#     words         and punctuation, those that the training text has nine times or more
#     articles      the 20,000 most frequent of them; a page of the dictionary is an article, which begins from nothing
#     --to FOLDER       FOLDER/dictionary-KIND instead; the text lies in FOLDER/files
#     --engram PROGRAM  what prepares it; otherwise build/program/apps/engram, or, installed, the program that is too
#     --from FILE       a gcide.dict.dz that is there, instead of the installed package's or a downloaded one's
#
# Entries keep their order and are never cut: so many as fill 20,000 bytes are a page, and of 100 pages one is validated
# and one tested on. The package is used where it is installed, else downloaded by apt and unpacked beside the text.
set -euo pipefail
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname -- "$here")
typed=apps/dictionary.sh
# Installed it lies in share/engram, and what it makes in the folder where it is called.
if [[ ! -e $root/apps/dictionary.sh ]]; then
  typed=$here/dictionary.sh
  root=
fi

wrong_usage() {
  echo "dictionary: $1" >&2
  echo "Try: bash $typed --help" >&2
  exit 2
}

fail() {
  echo "dictionary: $1" >&2
  exit 1
}

kinds=()
to=${root:+$root/}runs/data
engram=${root:+$root/build/program/apps/engram}
engram=${engram:-$here/../../bin/engram}
from=
while (($# > 0)); do
  case "$1" in
    -h | --help)
      sed -n '2,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --to | --engram | --from)
      if (($# < 2)) || [[ -z $2 ]]; then wrong_usage "$1 must be followed by a path, got nothing"; fi
      case "$1" in
        --to) to=$2 ;;
        --engram) engram=$2 ;;
        --from) from=$2 ;;
      esac
      shift
      ;;
    characters | subwords | words | articles) kinds+=("$1") ;;
    -*) wrong_usage "the options are --to, --engram, --from and --help, got '$1'" ;;
    *) wrong_usage "a kind must be one of characters, subwords, words, articles, got '$1'" ;;
  esac
  shift
done
if ((${#kinds[@]} == 0)); then wrong_usage "there must be a kind: characters, subwords, words or articles, got none"; fi
if [[ -n $from && ! -r $from ]]; then wrong_usage "--from must name a file that can be read, got '$from'"; fi
if [[ ! -x $engram ]]; then wrong_usage "--engram must name the program, got '$engram', which is none"; fi

files=$to/files
mkdir -p -- "$files" || fail "'$files' must be a folder that can be made"
exec 9>"$files/dictionary.lock"
if ! flock -n 9; then fail "'$files' must be used by one process at a time, got a second one"; fi

# dictionary_file: where the packed dictionary is.
dictionary_file() {
  local installed=/usr/share/dictd/gcide.dict.dz packages
  if [[ -n $from ]]; then
    echo "$from"
  elif [[ -r $installed ]]; then
    echo "$installed"
  else
    if [[ ! -r $files/gcide$installed ]]; then
      command -v apt-get >/dev/null ||
        fail "apt-get must be there to download dict-gcide, got none; --from names a gcide.dict.dz"
      (cd -- "$files" && apt-get -qq download dict-gcide >&2) || fail "apt-get could not download dict-gcide"
      packages=("$files"/dict-gcide_*.deb)
      dpkg-deb -x "${packages[-1]}" "$files/gcide" || fail "'${packages[-1]}' must be a Debian package"
    fi
    echo "$files/gcide$installed"
  fi
}

# The packed text has paragraphs of short, indented lines. Here a paragraph is a line, without what says at each that it is
# of 1913, and an entry begins behind an empty line. A few bytes that are no ASCII, in one old encoding or another, are
# left out.
plain_entries() {
  tr -d '\200-\377' | awk '
    function end_paragraph() {
      gsub(/[ \t]+/, " ", paragraph)
      gsub(/ ?\[1913 Webster\]/, "", paragraph)
      gsub(/^ | $/, "", paragraph)
      if (paragraph != "") print paragraph
      paragraph = ""
    }
    # A line that begins at the left begins an entry. Those of the file itself, before the first letter, are left out.
    /^[^ \t]/ { end_paragraph(); if (/^A /) begun = 1; if (begun) print ""; }
    !begun { next }
    /^[ \t]*$/ { end_paragraph(); next }
    { paragraph = paragraph " " $0 }
    END { end_paragraph() }'
}

# cut_pages BEFORE AFTER: every page to the file of its split, in $files, with the lines BEFORE and AFTER around it.
cut_pages() {
  awk -v files="$files" -v suffix="$1" -v before="$2" -v after="$3" '
    function begin_page() {
      page++
      split_name = page % 100 == 33 ? "valid" : page % 100 == 66 ? "test" : "train"
      file = files "/dictionary-" split_name suffix ".partial"
      if (before != "") print before > file
      bytes = 0
    }
    function end_page() { if (after != "") print after > file }
    # Only between entries.
    /^$/ && (page == 0 || bytes >= 20000) { if (page > 0) end_page(); begin_page() }
    { print > file; bytes += length($0) + 1 }
    END { if (page > 0) end_page() }'
}

# make_text SUFFIX BEFORE AFTER: the three files, all of them or none.
make_text() {
  local suffix=$1 packed name
  if [[ -s $files/dictionary-test$suffix ]]; then return; fi
  packed=$(dictionary_file)
  rm -f -- "$files"/dictionary-*"$suffix".partial
  gzip -dc -- "$packed" 2>/dev/null | plain_entries | cut_pages "$suffix" "$2" "$3" ||
    fail "'$packed' must be a packed dictionary, got another file"
  for name in train valid test; do
    if [[ ! -s $files/dictionary-$name$suffix.partial ]]; then fail "'$packed' must have 66 pages or more, got fewer"; fi
  done
  for name in train valid test; do mv -- "$files/dictionary-$name$suffix.partial" "$files/dictionary-$name$suffix"; done
}

for kind in "${kinds[@]}"; do
  suffix=.txt before="" after=""
  if [[ $kind == articles ]]; then suffix=.doc before="<doc>" after="</doc>"; fi
  make_text "$suffix" "$before" "$after"
  if [[ $kind == words ]]; then
    # Punctuation is apart.
    for name in train valid test; do
      sed -E 's/([].,:;?!(){}"[])/ \1 /g' "$files/dictionary-$name.txt" >"$files/dictionary-$name.words"
    done
    suffix=.words
  fi
  case "$kind" in
    characters) options=(--kind char) ;;
    subwords) options=(--kind bpe --vocabulary 8000) ;;
    words) options=(--kind word --oov unk --min-count 9) ;;
    articles) options=(--kind word --articles --format doc --words 20000) ;;
  esac
  "$engram" prepare "${options[@]}" --train "$files/dictionary-train$suffix" --valid "$files/dictionary-valid$suffix" \
    --test "$files/dictionary-test$suffix" --out "$to/dictionary-$kind"
done
