# A part of tests/ranks.sh: commands other than train, over ranks.

echo "== a sweep over ranks"
sweep=(sweep --config all_attention.toml --data characters --vary model.slots=2,3,4)
"$program" "${sweep[@]}" --out alone >said 2>&1 || fail "a sweep alone"
mpirun -n 2 "$program" "${sweep[@]}" --out dealt >said 2>&1 || fail "a sweep over two ranks"
for slots in 2 3 4; do
  cmp "alone/slots-$slots/checkpoint/model.safetensors" "dealt/slots-$slots/checkpoint/model.safetensors" ||
    fail "the variants must be those of one rank"
done
if [[ $(cut -d, -f1,5,6 alone/sweep.csv) != "$(cut -d, -f1,5,6 dealt/sweep.csv)" ]]; then fail "the tables must agree"; fi

echo "== a bench of two ranks"
bench=(bench --config all_attention.toml --steps 2 --product-size 32 --threads 1 --vocab 16)
mpirun -n 2 "$program" "${bench[@]}" >said 2>&1 || fail "a bench of two ranks"
for words in '2 ranks: ' ' of 2 times one rank, which takes ' 'rank 0 sends ' '% of it hidden'; do
  grep -qF -- "$words" said || fail "a bench must say: $words"
done
mpirun -n 2 "$program" "${bench[@]}" --json >bench.json 2>said || fail "a bench of two ranks, as JSON"
for field in ranks milliseconds_one_rank efficiency bytes_sent_per_step milliseconds_exchange \
  milliseconds_exchange_waited milliseconds_gather hidden_share; do
  grep -qE "\"$field\": ?[0-9]" bench.json || fail "a bench must say in JSON: $field"
done
# What rank 0 sends of gradients, values and norms is known before.
"$program" count --config all_attention.toml --vocab 16 --ranks 2 --json >count.json 2>said || fail "a count"
predicted=$(tr -d '\n' <count.json | sed -E 's/.*"bytes_rank_0_sends_per_step": ?\{([^}]*)\}.*/\1/' | tr ',' '\n' |
  tr -d ' ' | awk -F: '/gradients|values|squared_norms|table_rows/ { sum += $2 } END { print sum }')
grep -qE "\"bytes_sent_per_step\": ?$predicted\b" bench.json || fail "a bench must send $predicted bytes a step"
