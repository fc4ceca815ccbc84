#!/usr/bin/env bash
# Downloads a published data set, checks that it is the right one, unpacks it and prepares it for training.
#   bash apps/fetch.sh                  lists the data sets
#   bash apps/fetch.sh NAME...          makes runs/data/NAME, a folder for engram train --data
#     --to FOLDER       FOLDER/NAME instead; downloads lie in FOLDER/files
#     --engram PROGRAM  what prepares it; otherwise build/program/apps/engram, or, installed, the program that is too
#     --table FILE      other data sets than those of apps/data_sets.txt, which says how they are listed
#     --from ADDRESS    ADDRESS/FILE is tried before a file's own addresses: a copy that you or your network have
#
# What is there already is used, and a download that was cut off goes on. A wrong one is named, kept under another name
# and not used. Without a network it says what to fetch elsewhere and where to put it.
set -euo pipefail
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname -- "$here")
typed=apps/fetch.sh
# Installed it lies in share/engram, and what it makes in the folder where it is called.
if [[ ! -e $root/apps/fetch.sh ]]; then
  typed=$here/fetch.sh
  root=
fi

wrong_usage() {
  echo "fetch: $1" >&2
  echo "Try: bash $typed --help" >&2
  exit 2
}

fail() {
  echo "fetch: $1" >&2
  exit 1
}

names=()
to=${root:+$root/}runs/data
engram=${root:+$root/build/program/apps/engram}
engram=${engram:-$here/../../bin/engram}
table=$here/data_sets.txt
from=
while (($# > 0)); do
  case "$1" in
    -h | --help)
      sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --to | --engram | --table | --from)
      if (($# < 2)) || [[ -z $2 ]]; then
        if [[ $1 == --from ]]; then wrong_usage "--from must be followed by an address, got nothing"; fi
        wrong_usage "$1 must be followed by a path, got nothing"
      fi
      case "$1" in
        --to) to=$2 ;;
        --engram) engram=$2 ;;
        --table) table=$2 ;;
        --from)
          from=${2%/}
          # Addresses are words of a list.
          if [[ ! $from =~ ^[a-z]+://[^[:space:]]+$ ]]; then
            wrong_usage "--from must be an address such as http://host/folder, without blanks, got '$2'"
          fi
          ;;
      esac
      shift
      ;;
    -*) wrong_usage "the options are --to, --engram, --table, --from and --help, got '$1'" ;;
    *) names+=("$1") ;;
  esac
  shift
done
if [[ ! -r $table ]]; then wrong_usage "--table must name a file that can be read, got '$table'"; fi

# The table: of every name its line, of every corpus its downloads and members, a line each.
declare -A data=() downloads=() members=()
order=()
while read -r kind key rest; do
  case "$kind" in
    "" | \#*) ;;
    data)
      data[$key]=$rest
      order+=("$key")
      ;;
    download) downloads[$key]+=$rest$'\n' ;;
    member) members[$key]+=$rest$'\n' ;;
    *) fail "'$table': a line must begin with download, member or data, got '$kind'" ;;
  esac
done <"$table"

list_names() {
  local name corpus rest file bytes all
  printf '%-24s%-16s%s\n' NAME CORPUS "MB TO DOWNLOAD"
  for name in "${order[@]}"; do
    read -r corpus rest <<<"${data[$name]}"
    all=0
    while read -r file bytes rest; do
      if [[ -n $file && $bytes != - ]]; then all=$((all + bytes)); fi
    done <<<"${downloads[$corpus]-}"
    printf '%-24s%-16s%14s\n' "$name" "$corpus" "$(awk -v bytes="$all" 'BEGIN { printf "%.1f", bytes / 1e6 }')"
  done
}

if ((${#names[@]} == 0)); then
  list_names
  echo
  echo "bash $typed NAME makes runs/data/NAME."
  echo "docs/guide/data.md says which paper and config each is for."
  exit 0
fi
for name in "${names[@]}"; do
  if [[ -z ${data[$name]-} ]]; then wrong_usage "a name must be one of ${order[*]}, got '$name'"; fi
done

files=$to/files
mkdir -p -- "$files" || fail "'$files' must be a folder that can be made"
exec 9>"$files/lock"
if ! flock -n 9; then fail "'$files' must be used by one process at a time, got a second one"; fi

# fault_of FILE BYTES CHECK: what is wrong with it, nothing if it is right.
fault_of() {
  local file=$1 bytes=$2 check=$3 size found
  size=$(wc -c <"$file")
  if [[ $bytes != - && $size -ne $bytes ]]; then
    echo "must have $bytes bytes, got $size"
    return
  fi
  case "$check" in
    -) return ;;
    lines:*) found=lines:$(wc -l <"$file") ;;
    sha256:* | sha1:* | md5:*)
      found=${check%%:*}:$("${check%%:*}sum" <"$file")
      found=${found%% *}
      ;;
    *) fail "'$table': a check must be sha256:, sha1:, md5: or lines:, got '$check'" ;;
  esac
  if [[ $found != "$check" ]]; then echo "must have $check, got $found"; fi
}

# size_of FILE: its bytes, 0 where there is none.
size_of() { if [[ -e $1 ]]; then wc -c <"$1"; else echo 0; fi; }

# download_once ADDRESS PARTIAL: goes on with what is there.
download_once() {
  local address=$1 partial=$2 code=0 quiet=--silent
  if [[ -t 2 ]]; then quiet=--progress-bar; fi
  if command -v curl >/dev/null; then
    local curl=(curl --fail --location --show-error "$quiet" --connect-timeout 30)
    curl+=(--speed-limit 100 --speed-time 60) # a server that says nothing more
    "${curl[@]}" --continue-at - --output "$partial" "$address" || code=$?
    # The server cannot go on in the middle.
    if ((code == 33 || code == 36)); then
      rm -f -- "$partial"
      code=0
      "${curl[@]}" --output "$partial" "$address" || code=$?
    fi
    if ((code == 23)); then fail "'$partial' could not be written, is the disk full? What there is of it is kept"; fi
  elif command -v wget >/dev/null; then
    wget --no-verbose --tries=1 --timeout=60 --continue --output-document="$partial" "$address" || code=$?
    if ((code == 3)); then fail "'$partial' could not be written, is the disk full? What there is of it is kept"; fi
  else
    fail "curl or wget must be installed to download, got neither; apt-get install curl"
  fi
  return "$code"
}

# download ADDRESS PARTIAL: as often as the connection breaks behind some bytes more.
download() {
  local before
  while true; do
    before=$(size_of "$2")
    if download_once "$1" "$2"; then return; fi
    if (($(size_of "$2") <= before)); then return 1; fi
    echo "fetch: the connection broke after $(size_of "$2") bytes, trying to go on" >&2
  done
}

# get_file FILE BYTES CHECK ADDRESS...: FILE lies in $files afterwards, and is right.
get_file() {
  local file=$1 bytes=$2 check=$3 target=$files/$1 fault address is_new kind
  shift 3
  local partial=$target.partial
  if [[ -e $target ]]; then
    fault=$(fault_of "$target" "$bytes" "$check")
    if [[ -n $fault ]]; then
      fail "'$target' $fault; it is not used, and what lies there is not replaced: move it away"
    fi
    echo "$target is there."
    return
  fi
  if [[ -n $from ]]; then set -- "$from/$file" "$@"; fi
  # How much is missing is not known of a file of unknown length.
  if [[ $bytes == - ]]; then rm -f -- "$partial"; fi
  for address in "$@"; do
    for is_new in false true; do
      # A download may have been cut off just behind its end, or have been of another file.
      if [[ $bytes != - ]] && (($(size_of "$partial") > bytes)); then rm -f -- "$partial"; fi
      if [[ ! -e $partial ]]; then is_new=true; fi
      if [[ $bytes == - ]] || (($(size_of "$partial") < bytes)); then
        echo "Downloading $address"
        if ! download "$address" "$partial" || [[ ! -e $partial ]]; then break; fi
      fi
      fault=$(fault_of "$partial" "$bytes" "$check")
      if [[ -z $fault ]]; then
        mv -- "$partial" "$target"
        return
      fi
      kind=
      if head -c 1000 -- "$partial" | grep -aqiE '<!doctype html|<html'; then
        kind=" (a page of HTML, as of a proxy, a login or a file that has moved)"
      fi
      mv -f -- "$partial" "$target.wrong"
      echo "fetch: '$file' from $address $fault$kind; it is kept as '$target.wrong' and not used" >&2
      # The beginning that was there may have been the wrong part.
      if [[ $is_new == true ]]; then break; fi
    done
  done
  {
    echo "fetch: '$file' could not be had, the lines above say why. Where there is a network, fetch"
    printf '  %s\n' "$@"
    if [[ $bytes != - ]]; then echo "  ($bytes bytes, $check)"; else echo "  ($check)"; fi
    echo "put it here"
    echo "  $target"
    echo "and give this command again."
  } >&2
  exit 1
}

# unpack CORPUS: the folder $files/CORPUS, which is whole when it is there.
unpack() {
  local corpus=$1 folder=$files/$1 file bytes check path fault rest
  if [[ -d $folder ]]; then return; fi
  while read -r file bytes check rest; do
    # shellcheck disable=SC2086  # addresses have no blanks
    if [[ -n $file ]]; then get_file "$file" "$bytes" "$check" $rest; fi
  done <<<"${downloads[$corpus]-}"
  rm -rf -- "$folder.partial"
  mkdir -- "$folder.partial"
  while read -r file rest; do
    if [[ -z $file ]]; then continue; fi
    echo "Unpacking $file"
    case "$file" in
      *.zip)
        if ! command -v unzip >/dev/null; then fail "unzip must be installed for '$file'; apt-get install unzip"; fi
        # On a full disk it asks whether to go on.
        unzip -q "$files/$file" -d "$folder.partial" </dev/null ||
          fail "'$files/$file' could not be unpacked into '$folder.partial', the lines above say why"
        ;;
      *.tgz | *.tar.gz)
        tar --warning=no-unknown-keyword -xzf "$files/$file" -C "$folder.partial" ||
          fail "'$files/$file' could not be unpacked into '$folder.partial', the lines above say why"
        ;;
      *) cp -- "$files/$file" "$folder.partial/" ;;
    esac
  done <<<"${downloads[$corpus]-}"
  while read -r path bytes check; do
    if [[ -z $path ]]; then continue; fi
    if [[ ! -f $folder.partial/$path ]]; then fail "the archives of $corpus must have '$path', got none"; fi
    fault=$(fault_of "$folder.partial/$path" "$bytes" "$check")
    if [[ -n $fault ]]; then fail "'$folder.partial/$path' $fault; it is not used"; fi
  done <<<"${members[$corpus]-}"
  mv -- "$folder.partial" "$folder"
}

# count_of MEMBER FILE: numbers of a member of data.json, in their order.
count_of() { sed -n "s/.*\"$1\": *\([0-9][0-9]*\).*/\1/p" "$2"; }

prepare() {
  local name=$1 corpus expected words=() word arguments=() out=$to/$1 i found
  if [[ -f $out/data.json ]]; then
    echo "$out is there."
    return
  fi
  if [[ -e $out ]]; then fail "'$out' must be a data folder or nothing yet, got something else"; fi
  read -r -a words <<<"${data[$name]}"
  corpus=${words[0]}
  expected=("${words[@]:1:4}")
  unpack "$corpus"
  for word in "${words[@]:5}"; do
    if [[ $word == @* ]]; then word=$files/$corpus/${word:1}; fi
    arguments+=("$word")
  done
  if [[ ! -x $engram ]]; then
    echo "fetch: $corpus is in '$files/$corpus', but the program '$engram' must be there to prepare it" >&2
    if [[ -n $root ]]; then echo "  cmake --preset program && cmake --build build/program --target engram" >&2; fi
    exit 1
  fi
  echo "Preparing $out: engram prepare ${words[*]:5}"
  rm -rf -- "$out.partial"
  "$engram" prepare "${arguments[@]}" --out "$out.partial" ||
    fail "'$name' could not be prepared, the lines above say why"
  mapfile -t found < <(
    count_of vocabulary_size "$out.partial/data.json"
    count_of tokens "$out.partial/data.json"
  )
  local of=("a vocabulary" "train" "valid" "test")
  for i in 0 1 2 3; do
    if [[ ${expected[$i]} != - && ${expected[$i]} != "${found[$i]-}" ]]; then
      fail "'$out.partial' must have ${of[$i]} of ${expected[$i]} tokens, got ${found[$i]-none}; it is not used"
    fi
  done
  mv -- "$out.partial" "$out"
  echo "$out: a vocabulary of ${found[0]}, ${found[1]} tokens in train, ${found[2]} in valid, ${found[3]} in test"
}

for name in "${names[@]}"; do prepare "$name"; done
