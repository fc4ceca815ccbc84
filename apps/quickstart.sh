#!/usr/bin/env bash
# Trains a small all-attention language model on real text, from nothing, in about eight minutes on two cores.
#
#   bash apps/quickstart.sh                 the King James Bible (Debian package bible-kjv, 4.1 MB)
#   bash apps/quickstart.sh --text FILE     your own text in UTF-8: a million characters or more, 200 kB at least
#   bash apps/quickstart.sh --fresh         trains anew; the run that is there is kept under another name
#
# It installs the Debian packages it lacks, builds the program engram, prepares the text, trains, evaluates on chapters
# the model has not seen, beside xz, draws the learned attention spans and lets the model write. It may be stopped at any
# time: what is built, prepared or trained is used again, and a training goes on where it was. Everything lands in build/
# and runs/.
set -euo pipefail
export LC_ALL=C

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
config=apps/configs/kjv/kjv-quick.toml
engram=build/program/apps/engram

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
      sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
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
  # Now, not after minutes of building.
  if (($(wc -c <"$text") < 200000)); then
    wrong_usage "--text must have at least 200,000 bytes, got '$text' with $(wc -c <"$text")"
  fi
  if ! iconv -f UTF-8 -t UTF-8 -- "$text" >/dev/null 2>&1; then
    wrong_usage "--text must be UTF-8, which '$text' is not; iconv -f LATIN1 -t UTF-8 OLD >NEW converts, say, Latin-1"
  fi
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
pieces=runs/$name-quick-text # train.txt, valid.txt, test.txt, what the text was, and what xz needs for them
data=runs/$name-quick-data
step="starting"
step_began=0
steps_begun=0
times=""

# Of the step that ends here.
take_time() {
  if ((steps_begun > 0)); then
    times+=$(printf '  %-45s %3d:%02d' "$step" $(((SECONDS - step_began) / 60)) $(((SECONDS - step_began) % 60)))$'\n'
  fi
  step_began=$SECONDS
}

heading() {
  take_time
  step=$1
  steps_begun=$((steps_begun + 1))
  printf '\n== %d of 7. %s (after %d:%02d)\n' "$steps_begun" "$step" $((SECONDS / 60)) $((SECONDS % 60))
}

at_exit() {
  local code=$?
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

trap at_exit EXIT
mkdir -p runs

heading "Packages"
bash apps/install_packages.sh "${extra_packages[@]}"

heading "Building the program"
if [[ ! -x $engram ]]; then echo "The first time this takes two to four minutes on two cores."; fi
cmake --preset program --log-level=WARNING >/dev/null
cmake --build build/program --parallel "$(nproc)" --target engram

heading "Preparing the text"
if [[ -z $text ]]; then
  text=runs/kjv.txt
  if [[ ! -s $text ]]; then
    bible -f gen1:1-rev22:21 >"$text.partial"
    mv -- "$text.partial" "$text"
  fi
  pieces_are="chapters"
  # A line is "Ge1:1 In the beginning ...": a new chapter begins where what is before the colon changes. The model reads
  # the verses without their numbers.
  cut='{ reference = $1; line = substr($0, length(reference) + 2); sub(/:.*/, "", reference)
         if (reference != last) begin_piece(); last = reference }'
else
  pieces_are="pieces of about 4,000 characters"
  cut='{ line = $0; if (NR == 1 || size > 4000) begin_piece(); size += length($0) + 1 }'
fi
mark="in subwords: $(cksum <"$text")"
if [[ -f $data/data.json && -f $pieces/cksum && $(<"$pieces/cksum") == "$mark" ]]; then
  echo "$data holds this text already."
else
  if [[ -e $run && -f $pieces/cksum && $(<"$pieces/cksum") != "$mark" ]] && ((!fresh)); then
    fail "$run was trained on other data than what is made of '$text' now; --fresh trains anew and keeps the old run"
  fi
  rm -rf -- "$pieces"
  mkdir -p "$pieces"
  # One in twenty of the pieces each is for validation and held out, drawn by Lehmer's generator from a fixed seed, as
  # awk's own numbers differ from one awk to the next.
  awk -v state=20241125 -v out="$pieces/" "
    function begin_piece() {
      state = (state * 16807) % 2147483647
      share = state / 2147483647
      split_name = share < 0.05 ? \"test\" : share < 0.1 ? \"valid\" : \"train\"
      size = 0
    }
    $cut
    { print line > (out split_name \".txt\") }" "$text"
  for split in train valid test; do
    if [[ ! -s $pieces/$split.txt ]]; then fail "'$text' must be longer, or have shorter lines, to hold some out"; fi
  done
  # Subwords: of characters a model reads a third as much text in the same time. A script of many letters needs more.
  letters=$(LC_ALL=C.UTF-8 grep -o . "$pieces/train.txt" | sort -u | wc -l)
  "$engram" prepare --kind bpe --vocabulary $((letters > 300 ? letters + 1700 : 2000)) --train "$pieces/train.txt" \
    --valid "$pieces/valid.txt" --test "$pieces/test.txt" --out "$data"
  printf '%s\n' "$mark" >"$pieces/cksum"
fi
train_bytes=$(wc -c <"$pieces/train.txt")
test_bytes=$(wc -c <"$pieces/test.txt")
echo "Training reads $train_bytes bytes. Held out are $test_bytes: $pieces_are the model has not seen, of the same text."

heading "Training ($config)"
if [[ -e $run ]] && ((fresh)); then set_aside "$run"; fi
resume=()
if compgen -G "$run/checkpoint*" >/dev/null; then
  echo "$run is there: going on from its checkpoint, if it is not complete."
  resume=(--resume)
elif [[ -e $run ]]; then
  # Stopped before its first checkpoint.
  set_aside "$run"
fi
"$engram" train --config "$config" --data "$data" --out "$run" --set training.sample_every=500 "${resume[@]}"

heading "Evaluating on the held-out text"
result=$("$engram" evaluate "$run" --data "$data" --split test --exact --json)
model_bits=$(printf '%s\n' "$result" | sed -n 's/.*"bits_per_byte" *: *\([0-9.eE+-]*\).*/\1/p' | head -n 1)
if [[ -z $model_bits ]]; then
  printf '%s\n' "$result" >&2
  fail "evaluate must report \"bits_per_byte\", got the lines above"
fi
if [[ ! -s $pieces/xz ]]; then
  echo "Measuring what xz needs ..."
  train_packed=$(xz -9e --stdout <"$pieces/train.txt" | wc -c)
  both_packed=$(cat "$pieces/train.txt" "$pieces/test.txt" | xz -9e --stdout | wc -c)
  echo $((both_packed - train_packed)) >"$pieces/xz"
fi
awk -v model="$model_bits" -v packed="$(<"$pieces/xz")" -v bytes="$test_bytes" 'BEGIN {
  xz = 8 * packed / bytes
  printf "  this model   %.3f bits per byte of the held-out text\n", model
  printf "  xz -9e       %.3f: by as much the training text grows, compressed, with the held-out text behind it\n", xz
  if (model < xz) printf "  The model needs %.0f%% fewer bits.\n", 100 * (1 - model / xz)
  else printf "  xz needs %.0f%% fewer bits: longer training or more text is what helps the model.\n", 100 * (1 - xz / model)
}'

heading "Learned attention spans, per layer and head"
echo "How many subwords each head looks back; all began at 144."
"$engram" spans "$run" --svg "$run-spans.svg"
echo "The same as a drawing: $run-spans.svg"

heading "Writing"
if [[ $name == kjv ]]; then
  prompt="And it came to pass"
else
  # The first held-out line that says something, or the first words of it.
  # The cut may go through a character.
  head -c 4000 -- "$pieces/test.txt" | tr -d '\000' | iconv -c -f UTF-8 -t UTF-8 >"$pieces/start" 2>/dev/null || true
  prompt=$(grep -m 1 -a '[^[:space:]]' "$pieces/start" || true)
  rm -f -- "$pieces/start"
  if ((${#prompt} > 60)) && [[ ${prompt:0:60} == *[!\ ]\ * ]]; then
    prompt=${prompt:0:60}
    prompt=${prompt% *}
  fi
fi
"$engram" generate "$run" --prompt="$prompt" --length 130 --temperature 0.7
echo
take_time

cat <<END

== Done. Minutes of each part:
$times
The run lies in $run (config.toml, metrics.jsonl, checkpoint); its text, prepared, in $data.
What to try next, from $root:
  $engram generate $run
                                       a session: type beginnings, the model writes on
  $engram report $run --out $run.html
                                       all of it on one page, for a browser
  $engram spans $run --history
                                       how its spans grew
  bash apps/quickstart.sh --text FILE  the same with your own text
What all of this was: docs/guide/first-run.md.

Not built here: tests (bash tests/run.sh), the autograd tour (docs/guide/autograd-tour.md), kernels for cards (docs/guide/gpu.md).
END
