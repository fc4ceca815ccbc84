# A part of tests/ranks.sh: every number of ranks leaves the bytes of one, whatever their threads and their device are,
# and goes on with what others began.

for split in train:12 valid:5 test:5; do
  for ((article = 0; article < ${split#*:}; article++)); do
    printf '<doc id="%d">\n' "$article"
    make_words $((article + 7)) 60
    printf '\n</doc>\n'
  done >"${split%:*}.articles"
done
"$program" prepare --kind word --articles --format doc --pretokenized --train train.articles --valid valid.articles \
  --test test.articles --out articles >said 2>&1 || fail "articles are prepared"

data_of() { if [[ $1 == recurrent ]]; then echo articles; else echo characters; fi; }

echo "== every family on 1, 2 and 4 ranks"
for family in all_attention transformer_xl product_key recurrent; do
  for ranks in 1 2 4; do
    train "$ranks" "$family-$ranks" --config "$family.toml" --data "$(data_of "$family")" || fail "$family on $ranks ranks"
    if ((ranks > 1)); then same_run "$family-1" "$family-$ranks"; fi
  done
  if [[ $(grep -c 'done after 12 steps' said) != 1 ]]; then fail "one rank speaks"; fi
done

echo "== ranks of several threads"
# Wide enough for kernels to share their work.
for family in all_attention product_key; do
  wide=(--config "$family.toml" --data characters --set model.width=64 training.block=64 schedule.steps=4
    schedule.warmup=1)
  for way in 1x1 1x3 2x2 2x3; do
    OMP_NUM_THREADS=${way#*x} train "${way%x*}" "$family-$way" "${wide[@]}" || fail "$family, ranks x threads: $way"
    if ! grep -q "\"threads\":${way#*x}" "$family-$way/metrics.jsonl"; then fail "it must have the threads of $way"; fi
    same_run "$family-1x1" "$family-$way"
  done
done

echo "== ranks on the device simulated"
families=(transformer_xl)
if ((by_night)); then families=(all_attention transformer_xl product_key recurrent); fi
for family in "${families[@]}"; do
  on_device=(--config "$family.toml" --data "$(data_of "$family")" --device simulated --set schedule.steps=3
    schedule.warmup=1)
  for ranks in 1 2 4; do
    if ! train "$ranks" "simulated-$family-$ranks" "${on_device[@]}"; then
      if grep -q 'this build has no backend for it' said; then
        echo "   left out: this build has no such device"
        break 2
      fi
      fail "$family on the device simulated by $ranks ranks"
    fi
    if ((ranks > 1)); then same_run "simulated-$family-1" "simulated-$family-$ranks"; fi
  done
done

echo "== data that were copied to each machine, and a folder that rank 0 alone writes"
mkdir elsewhere
cp -r characters elsewhere
cat >elsewhere/as_last <<'SCRIPT'
#!/usr/bin/env bash
if ((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?}} == 1)); then cd elsewhere; fi
exec "$@"
SCRIPT
chmod +x elsewhere/as_last
mpirun -n 2 "$folder/elsewhere/as_last" "$program" train --out apart --config "$folder/all_attention.toml" \
  --data characters >said 2>&1 || fail "data that were copied"
same_run all_attention-1 apart
if [[ -e elsewhere/apart ]]; then fail "rank 1 must write nothing"; fi

echo "== from four ranks to one and to two"
# Without a decay and a warm-up the first steps are those of a longer run.
parts_of_run=(--config all_attention.toml --data characters --set schedule.warmup=0 schedule.decay=none)
train 1 whole "${parts_of_run[@]}" || fail "the whole run"
# A configuration without a split, which four ranks raise to four, as fewer of them keep it.
grep -v '^split' all_attention.toml >no_split.toml
parts_of_run[1]=no_split.toml
train 4 parts "${parts_of_run[@]}" --steps 4 || fail "the first four steps"
if [[ $(grep -c 'training.split is 4 in place of 1 for 4 ranks; one rank with --split 4 has the same numbers' said) != 1 ]]; then
  fail "a raised split must be said once"
fi
train 1 parts "${parts_of_run[@]}" --steps 8 --resume || fail "resumed on one rank"
train 2 parts "${parts_of_run[@]}" --resume || fail "resumed on two ranks"
cmp whole/checkpoint/model.safetensors parts/checkpoint/model.safetensors || fail "parts must be the whole"

echo "== evaluations by 2, 3 and 4 ranks"
# told RANKS OPTION...: what is printed, without the speed; the losses of all tokens go to losses.npy.
told() {
  local ranks=$1
  shift
  mpirun -n "$ranks" "$program" evaluate "$@" --json --per-token losses.npy 2>said |
    sed -E 's/"(tokens|words)_per_second":[-+0-9.e]+,?//g'
}
# same_evaluation RANKS OPTION...: RANKS are numbers of them.
same_evaluation() {
  local one ranks several=$1
  shift
  one=$(told 1 "$@") || fail "evaluate $* by one"
  mv losses.npy losses-1.npy
  for ranks in $several; do
    if [[ $(told "$ranks" "$@") != "$one" ]]; then fail "$ranks ranks must say what one does: evaluate $*"; fi
    cmp losses-1.npy losses.npy || fail "the losses of $ranks ranks must be those of one: evaluate $*"
  done
}
same_evaluation '2 3 4' all_attention-1 --data characters --split train --block 64
same_evaluation 3 product_key-1 --data characters --split train --window 24 --apart
same_evaluation 4 recurrent-1 --data articles --split train --block 100 --cache 20
same_evaluation 2 transformer_xl-1 --data characters --exact
grep -q 'more ranks than 1 make that no faster' said || fail "a single stream must be told"
