#!/usr/bin/env bash
# Trains a small all-attention language model on real text, from nothing, in about five minutes on two cores.
#
#   bash apps/quickstart.sh                 the King James Bible (Debian package bible-kjv, 4.4 MB)
#   bash apps/quickstart.sh --text FILE     your own text: a million characters or more, in lines
#   bash apps/quickstart.sh --fresh         trains anew; the run that is there is kept under another name
#
# It installs the Debian packages it lacks, builds the program engram, prepares the text, trains, evaluates on text the
# model has not seen, beside xz, prints the learned attention spans and lets the model write. What is already built,
# prepared or trained is used again; a training that was interrupted is continued. Everything lands in build/ and runs/.
set -euo pipefail
export LC_ALL=C

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
config=apps/configs/kjv-quick.toml
engram=build/release/apps/engram

wrong_usage() {
  echo "quickstart: $1" >&2
  echo "Try: bash apps/quickstart.sh --help" >&2
  exit 2
}

text=""
fresh=0
while (($# > 0)); do
  case "$1" in
    -h | --help)
      sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --text)
      if (($# < 2)) || [[ -z $2 ]]; then wrong_usage "--text must be followed by a file, got nothing"; fi
      text=$2
      shift
      ;;
    --text=?*) text=${1#--text=} ;;
    --fresh) fresh=1 ;;
    *) wrong_usage "the options are --text FILE, --fresh and --help, got '$1'" ;;
  esac
  shift
done

if [[ -n $text ]]; then
  if [[ ! -f $text || ! -r $text ]]; then wrong_usage "--text must name a file that can be read, got '$text'"; fi
  # Relative to where the user is, before going to the root.
  text=$(realpath -- "$text")
  name=$(basename -- "$text")
  name=${name%.*}
  # The name goes into commands that the user may copy.
  name=${name//[^A-Za-z0-9._-]/_}
  while [[ $name == [.-]* ]]; do name=${name:1}; done
  name=${name:-text}
  if [[ $name == kjv ]]; then name=kjv-text; fi # kjv is the Bible of the package
  extra_packages=(xz-utils)
else
  name=kjv
  extra_packages=(xz-utils bible-kjv)
fi

cd -- "$root"
run=runs/$name-quick
data=runs/$name-data
text_mark=runs/$name-data.cksum # of the text that is in the data folder
work=""
step="starting"
steps_begun=0

heading() {
  step=$1
  steps_begun=$((steps_begun + 1))
  printf '\n== %d of 7. %s\n' "$steps_begun" "$step"
}

at_exit() {
  local code=$?
  if [[ -n $work ]]; then rm -rf -- "$work"; fi
  if ((code == 130)); then
    echo >&2
    echo "quickstart: interrupted in step $steps_begun. The same command goes on from there." >&2
  elif ((code != 0)); then
    echo >&2
    echo "quickstart: step $steps_begun failed ($step, exit $code); the lines above say why." >&2
    echo "Everything before it is kept: the same command goes on from there, with --fresh it trains anew." >&2
  fi
}

fail() {
  echo "quickstart: $1" >&2
  exit 1
}

# Moves $1 out of the way, to the first free name, and says so.
set_aside() {
  local number=1
  while [[ -e $1.$number ]]; do number=$((number + 1)); done
  mv -- "$1" "$1.$number"
  echo "The old $1 is now $1.$number."
}

# The whole number named $2 in the object named $1 of data.json.
data_number() {
  tr -d ' \n\t' <"$data/data.json" | grep -o "\"$1\":{[^{}]*}" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"
}

trap at_exit EXIT
mkdir -p runs

heading "Packages"
bash apps/install_packages.sh "${extra_packages[@]}"

heading "Building the program"
if [[ ! -x $engram ]]; then echo "The first time this takes a few minutes."; fi
cmake --preset release --log-level=WARNING >/dev/null
cmake --build build/release --parallel "$(nproc)" --target engram

heading "Preparing the text"
if [[ -z $text ]]; then
  text=runs/kjv.txt
  if [[ ! -s $text ]]; then
    bible -f gen1:1-rev22:21 >"$text.partial"
    mv -- "$text.partial" "$text"
  fi
fi
mark=$(cksum <"$text")
if [[ -f $data/data.json && -f $text_mark && $(<"$text_mark") == "$mark" ]]; then
  echo "$data holds this text already."
else
  if [[ -e $run && -f $text_mark && $(<"$text_mark") != "$mark" ]] && ((!fresh)); then
    fail "$run was trained on another text than '$text' is now; --fresh trains anew and keeps the old run"
  fi
  rm -f -- "$text_mark"
  "$engram" prepare --kind char --text "$text" --split 90,5,5 --out "$data"
  printf '%s\n' "$mark" >"$text_mark"
fi
train_bytes=$(data_number train bytes)
test_bytes=$(data_number test bytes)
test_first=$(data_number test first_byte)
text_bytes=$(wc -c <"$text")
if [[ $(data_number train first_byte) != 0 || $((test_first + test_bytes)) != "$text_bytes" ]]; then
  fail "$data/data.json must describe the $text_bytes bytes of '$text', got another size; remove $data and call again"
fi
echo "Text: $text_bytes bytes; the first $train_bytes are for training, the last $test_bytes are held out."

heading "Training ($config, into $run)"
if [[ -e $run ]] && ((fresh)); then set_aside "$run"; fi
resume=()
if compgen -G "$run/checkpoint*" >/dev/null; then
  echo "$run is there: going on from its checkpoint, if it is not complete."
  resume=(--resume)
elif [[ -e $run ]]; then
  # Stopped before its first checkpoint.
  set_aside "$run"
fi
"$engram" train --config "$config" --data "$data" --out "$run" "${resume[@]}"

heading "Evaluating on the held-out text"
result=$("$engram" evaluate "$run" --data "$data" --split test --exact --json)
model_bits=$(printf '%s\n' "$result" | sed -n 's/.*"bpc" *: *\([0-9.eE+-]*\).*/\1/p' | head -n 1)
if [[ -z $model_bits ]]; then
  printf '%s\n' "$result" >&2
  fail "evaluate must report \"bpc\", got the lines above"
fi
echo "Measuring what xz needs ..."
work=$(mktemp -d "${TMPDIR:-/tmp}/engram-quickstart.XXXXXX")
head -c "$train_bytes" -- "$text" >"$work/train"
tail -c "$test_bytes" -- "$text" >"$work/test"
train_packed=$(xz -9e --stdout <"$work/train" | wc -c)
both_packed=$(cat "$work/train" "$work/test" | xz -9e --stdout | wc -c)
awk -v model="$model_bits" -v both="$both_packed" -v train="$train_packed" -v bytes="$test_bytes" 'BEGIN {
  xz = 8 * (both - train) / bytes
  printf "  this model             %.3f bits per character\n", model
  printf "  xz -9e                 %.3f bits per character, of the same text after the training text\n", xz
  if (model < xz) printf "  The model needs %.0f%% fewer bits.\n", 100 * (1 - model / xz)
  else printf "  xz needs %.0f%% fewer bits: longer training or more text is what helps the model.\n", 100 * (1 - xz / model)
}'

heading "Learned attention spans, per layer and head"
"$engram" spans "$run"

heading "Writing 400 characters"
if [[ $name == kjv ]]; then
  prompt="And it came to pass"
else
  # Held-out text has only characters that the model knows: its first whole line that says something, or the
  # first words of that line.
  head -c 4000 -- "$work/test" | tr -d '\000' >"$work/start"
  prompt=$(sed '1d' "$work/start" | grep -m 1 -a '[^[:space:]]' || cat "$work/start")
  if ((${#prompt} > 60)) && [[ ${prompt:0:60} == *[!\ ]\ * ]]; then
    prompt=${prompt:0:60}
    prompt=${prompt% *}
  fi
fi
"$engram" generate "$run" --prompt="$prompt" --length 400
echo

minutes=$(awk -v seconds="$SECONDS" 'BEGIN { printf "%.1f", seconds / 60 }')
cat <<END

== Done, after $minutes minutes
The run lies in $run (config.toml, metrics.jsonl, checkpoint); its text, prepared, in $data.
What to try next, from $root:
  $engram generate $run --prompt=$(printf '%q' "$prompt") --length 400 --temperature 0.7
  $engram train --config apps/configs/kjv-hour.toml --data $data --out runs/$name-hour
  bash apps/quickstart.sh --text FILE        the same with your own text
  bash tests/run.sh                          every test
END
