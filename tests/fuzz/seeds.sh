#!/usr/bin/env bash
# Writes real files for the corpus of every reader, made by the program itself: what fuzzing begins with.
#   bash tests/fuzz/seeds.sh PROGRAM FOLDER         FOLDER/READER/seed-...
# Models are of a few hundred parameters and trained for a few steps. A quarter of a minute.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
if (($# != 2)); then
  echo "tests/fuzz/seeds.sh: there must be a program and a folder, got $# arguments" >&2
  exit 2
fi
program=$(realpath -- "$1")
mkdir -p -- "$2"
out=$(realpath -- "$2")
work=$(mktemp -d "${TMPDIR:-/tmp}/engram-seeds.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
# Logs have the words of their command, the folder and the machine: these are of nobody.
mkdir bin
ln -s -- "$program" bin/engram
export PATH=$work/bin:$PATH
export OMP_NUM_THREADS=1

# seed READER NAME FILE
seed() {
  mkdir -p "$out/$1"
  if [[ $1 == metrics ]]; then
    sed -e "s#\"$work\"#\"/home/reader/texts\"#; s#\"$(uname -n)\"#\"host\"#" "$3" >"$out/$1/seed-$2"
  else
    cp -- "$3" "$out/$1/seed-$2"
  fi
}
# Entries of a checkpoint's metadata, as tests/fuzz/checkpoint_metadata.cpp has them.
metadata() {
  python3 - "$1" <<'PYTHON'
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
entries = header["__metadata__"]
sys.stdout.write("\x1e".join(key + "\x1f" + value for key, value in entries.items() if key != "engram.checksum"))
PYTHON
}

# Texts, and data of every kind.
words=(the cat sat on a mat and dog ran to its house while birds sang loud songs . , Mr. Smith "don't" 1,000 "\"yes\"")
for i in $(seq 1 60); do
  line=""
  for j in $(seq 1 $((i % 7 + 3))); do line+="${words[$(((i * 7 + j * j) % ${#words[@]}))]} "; done
  echo "$line"
done >text.txt
printf ' = A title = \n\n One sentence here . And @-@ another , 1 @,@ 000 .\n\n = Second = \n\n It is short .\n' >wikitext.txt
printf '<doc id="1" title="A">\nA sentence. Mr. Smith ran.\n\nAnother one!\n</doc>\n<doc id="2" title="B">\nIt is 5 p.m. now.\n</doc>\n' >doc.txt
printf '_BOOK_TITLE_ : A.txt.out\nCHAPTER I\nThe cat sat .\nIt ran .\n_BOOK_TITLE_ : B.txt.out\nBirds sang .\n' >cbt.txt
head -n 12 text.txt >short.txt
seed texts plain short.txt
printf '\xef\xbb\xbfz\xc3\xa4hlen \xe2\x80\x9cSie\xe2\x80\x9d\xe2\x80\xa6 U.S. Army\r\n#NUMERIC_ONLY#\nNo\n\xff\xfe bytes\n' >mixed.txt
seed texts mixed mixed.txt
for kind in wikitext doc cbt; do seed article_texts $kind $kind.txt; done
head -n 4 text.txt >file.txt
seed article_texts file file.txt

engram prepare --kind char --text text.txt --out chars >/dev/null
engram prepare --kind word --text text.txt --out words --oov unk >/dev/null
engram prepare --kind bpe --text text.txt --vocabulary 300 --out pairs >/dev/null
for i in $(seq 1 12); do printf '<doc id="%d" title="T%d">\nThe cat number %d sat. A dog ran to Mr. Smith.\n</doc>\n' "$i" "$i" "$i"; done >docs.txt
engram prepare --kind word --articles docs.txt --out articles >/dev/null
for data in chars words pairs articles; do
  seed vocabulary $data $data/vocabulary.json
  seed data_facts $data $data/data.json
  seed tokens $data $data/valid.tokens
done
seed article_starts articles articles/train.articles
seed article_starts valid articles/valid.articles
seed sentencepiece learned pairs/vocabulary.model

# Byte-pair codes in the three forms, and their lists.
printf 't h 30\nth e</w> 20\na n 9\nan d</w> 8\n' >fastbpe.codes
printf '#version: 0.2\nt h\nth e</w>\na n\n' >v0_2.codes
printf 't h\nth e\nthe </w>\n' >v0_1.codes
printf 'the 30\nth@@ 20\na@@ 9\nn 4\nd 3\ncat 2\n' >codes.vocab
for codes in fastbpe v0_2 v0_1; do seed merge_codes $codes $codes.codes; done
seed merge_codes list codes.vocab
engram prepare --kind bpe --text text.txt --bpe-codes fastbpe.codes --out merged >/dev/null
seed merge_codes model merged/vocabulary.model
seed vocabulary merged merged/vocabulary.json
printf '<S>\nthe\ncat 7\n<UNK>\nsat\n<eos>\n' >list.txt
seed word_list list list.txt
seed word_list pickled "$root/tests/golden/released/vocab.pkl"
seed word_list subwords codes.vocab

# Runs of all families: their configurations, logs and checkpoints.
common="--set training.batch=2 training.block=8 training.report_every=1 training.validate_every=2
  training.checkpoint_every=2 schedule.steps=4 schedule.rate=0.01 training.validate_blocks=1"
train() { engram train "$@" --threads 1 >/dev/null; }
cat >all.toml <<'TOML'
[model]
family = "all_attention"
layers = 1
width = 8
heads = 2
max_span = 8
slots = 4
[schedule]
steps = 4
rate = 0.01
TOML
sed -e 's/all_attention/transformer_xl/; s/^max_span.*/inner = 8\nmemory = 8/; s/^slots.*//' all.toml >xl.toml
sed -e 's/all_attention/product_key/; s/^max_span.*/position_rows = 8/; s/^slots.*//' all.toml >keys.toml
printf '[product_key]\nlayers = [1]\nsubkeys = 4\nheads = 1\nselected = 2\nquery_width = 4\n' >>keys.toml
printf '[model]\nfamily = "recurrent"\nlayers = 1\nwidth = 6\n[schedule]\nsteps = 4\nrate = 0.01\n' >recurrent.toml
for run in all xl keys recurrent; do
  data=chars
  if [[ $run == recurrent ]]; then data=words; fi
  train --config $run.toml --data $data --out runs/$run $common
  seed config $run runs/$run/config.toml
  seed config $run-given $run.toml
  seed metrics $run runs/$run/metrics.jsonl
  metadata runs/$run/checkpoint/model.safetensors >metadata
  seed checkpoint $run metadata
done
cp -r runs/all runs/gone-on
train --resume --out runs/gone-on --data chars --steps 6
seed metrics gone-on runs/gone-on/metrics.jsonl
seed safetensors model runs/recurrent/checkpoint/model.safetensors
seed safetensors transfo-xl "$root/tests/golden/transfo-xl/plain.safetensors"
engram map runs/keys --out mapped >/dev/null
for table in mapped/checkpoint/*.table; do seed table "$(basename "$table")" "$table"; done
metadata mapped/checkpoint/model.safetensors >metadata
seed checkpoint mapped metadata
for config in "$root"/apps/configs/kjv/kjv-{hour,product-key,words}.toml "$root"/apps/configs/transformer-xl/ptb.toml \
  "$root"/apps/configs/key-value-predict/lstm.toml "$root"/apps/configs/all-attention/as-printed/text8-small.toml; do
  seed config "$(basename "$config")" "$config"
done
for study in "$root"/apps/configs/studies/*.study; do seed study "$(basename "$study")" "$study"; done

# PyTorch's files, and pickles.
for file in cache.pt corpus.pt transformer-xl.pt adaptive-span.pt vocab.pkl; do
  seed pytorch $file "$root/tests/golden/released/$file"
done
seed pickle vocab "$root/tests/golden/released/vocab.pkl"
python3 - "$root/tests/golden/released" "$out/pickle" <<'PYTHON'
import sys, zipfile
for name in ("corpus.pt", "transformer-xl.pt", "adaptive-span.pt", "all-attention.pt"):
    path = sys.argv[1] + "/" + name
    if not zipfile.is_zipfile(path):
        continue
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.endswith(".pkl"):
                with open(sys.argv[2] + "/seed-" + name, "wb") as file:
                    file.write(archive.read(member))
PYTHON
for config in "$root"/tests/golden/transfo-xl/*.json; do seed foreign_config "$(basename "$config")" "$config"; done

# Tables of sweeps, and what is claimed of them.
engram sweep --config all.toml --data chars --out swept --vary model.slots=4,8 --seeds 1,2 $common >/dev/null
{ echo "more help: best_valid_bpc: slots-8 < slots-4|alike: parameters: slots-4 ~5% slots-8" && cat swept/sweep.csv; } >claims
seed sweep_table sweep claims
{ echo "" && cat swept/runs.csv; } >claims
seed sweep_table runs claims

# Questions, and what another program says of them.
for answer in cat dog; do
  for i in $(seq 1 20); do echo "$i The cat sat on the mat ."; done
  printf '21 The XXXXX ate the mouse .\t%s\t\tcat|cow|dog|egg|fox|hat|hen|owl|pig|rat\n\n' $answer
done >questions.txt
seed cbt two questions.txt
seq -f '-%g.5' 1 20 >scores.txt
seed scores numbers scores.txt
printf -- '-inf\n1e-3\r\n -2 \n+3\n0x1p3\nnan\n' >scores.txt
seed scores odd scores.txt

# Texts of the command line.
mkdir -p "$out"/{setting,arguments,argument_values,requests}
i=0
for setting in model.width=64 'training.freeze="layers.0.*"' 'training.freeze=["a","b"]' model.cutoffs=1,2,3 \
  optimizer.beta2=1e-3 'schedule.steps = 1_000' training.weight_average=true 'training.sample_prompt="é\u00e9"' \
  product_key.layers=[1] 'n_head=4' 'div_val=1' model.family=recurrent recurrent.windows=3 schedule.steps=99999999999999999999; do
  printf '%s' "$setting" >"$out/setting/seed-$((i += 1))"
done
i=0
while IFS= read -r line; do
  i=$((i + 1))
  tr ' ' '\n' <<<"$line" >"$out/arguments/seed-$i"
done <<'LINES'
train --config a.toml --data data --out runs/a --set model.width=16 training.seed=3 --steps 100 --device cuda:0
sweep --config a.toml --data data --out s --vary model.slots=1,2 --variant a:model.width=8 --seeds 1,2,3
generate runs/a --prompt The --length 40 --temperature 0.9 --top-k 5 --count 2
evaluate runs/a --data data --split test --best --batch 4 --threads 2 --json
cbt runs/a --questions a.txt b.txt --score whole --carry none --lenient
prepare --kind word text.txt --out words --min-count 2 --oov unk --eol keep --split 80,10,10
bench a.toml b.toml --steps 3 --way fast --json
count --config a.toml --memory --ranks 4 --fits 24GiB
figure curve runs/a runs/b --width 7in --out a.pdf --xlabel=steps
import w.pt --out runs/x --set n_head=4 --vocabulary v.pkl
watch runs --port 8000
tape --config a.toml --out tape.html
LINES
i=0
for value in 'slots help: test_ppl: a > b > c' 'alike: test_ppl: a ~5% b' 1,2,3 32,64,96 0.1,0.5,1 cuda:1 f32 24GiB 90,5,5 \
  keep first all model.slots=1,2 'a:model.width=8,model.layers=2' 2026-11-26T02:45:00Z 1.3,2.4 7cm 3.25in; do
  printf '%s' "$value" >"$out/argument_values/seed-$((i += 1))"
done
printf 'GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n' >"$out/requests/seed-page"
printf 'GET /data?since=3 HTTP/1.1\r\nHost: localhost:PORT\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n\r\n' >"$out/requests/seed-data"
printf 'HEAD / HTTP/1.0\r\nHost: 127.0.0.1:PORT\r\nConnection: keep-alive\r\n\r\n' >"$out/requests/seed-head"
printf 'POST /data HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n' >"$out/requests/seed-post"
printf 'GET /data?since=%%31&since=2 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nRange: bytes=0-9\r\nAccept-Encoding: gzip\r\n\r\n' \
  >"$out/requests/seed-range"
