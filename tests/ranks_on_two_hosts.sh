#!/usr/bin/env bash
# Trains over two hosts that talk through a network, and compares the checkpoint with that of one process. The hosts are
# network namespaces of this machine, each with a name and a folder for temporary files of its own, and a cable between.
# Then a rank of one host is killed, then the cable is cut: both runs go on as one process, to the bytes of one that
# nobody disturbed. As root, where such namespaces may be made; else it says so and ends with 0.
#   bash tests/ranks_on_two_hosts.sh PROGRAM      PROGRAM: build/release/apps/engram
# A part of tests/nightly.sh. A minute.
set -euo pipefail

program=$(realpath "${1:?tests/ranks_on_two_hosts.sh: which program?}")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
folder=$(mktemp -d "${TMPDIR:-/tmp}/engram-hosts.XXXXXX")
left=engram-left-$$
right=engram-right-$$
clean() {
  local pids
  pids="$(ip netns pids "$left" 2>/dev/null || true) $(ip netns pids "$right" 2>/dev/null || true)"
  if [[ -n ${pids// /} ]]; then kill -KILL $pids 2>/dev/null || true; fi
  ip netns delete "$left" 2>/dev/null || true
  ip netns delete "$right" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean EXIT
cd -- "$folder"

fail() {
  printf 'tests/ranks_on_two_hosts.sh: %s\n' "$*" >&2
  if [[ -s said ]]; then sed 's/^/  | /' said >&2; fi
  exit 1
}

if ! ip netns add "$left" 2>/dev/null || ! ip netns add "$right"; then
  echo "Left out: this user, or this machine, may make no network namespaces."
  exit 0
fi
ip -n "$left" link add cable type veth peer name cable netns "$right"
ip -n "$left" address add 10.97.0.1/24 dev cable
ip -n "$right" address add 10.97.0.2/24 dev cable
for host in "$left" "$right"; do
  mkdir "tmp-$host"
  ip -n "$host" link set lo up
  ip -n "$host" link set cable up
done

# host NAME COMMAND...: runs it there.
cat >host <<SCRIPT
#!/usr/bin/env bash
name=\$1
shift
export TMPDIR=$folder/tmp-\$name
exec ip netns exec "\$name" unshare --uts bash -c 'hostname "\$1"; shift; exec "\$@"' host "\$name" "\$@"
SCRIPT
# What mpirun calls in the place of ssh: the other host's address, and a command line for a shell.
cat >agent <<SCRIPT
#!/usr/bin/env bash
shift
exec "$folder/host" "$right" bash -c "\$*"
SCRIPT
chmod +x host agent
printf '10.97.0.1 slots=2\n10.97.0.2 slots=2\n' >hosts

words=(an age ago bee big bread dear edge fire go)
RANDOM=1
for ((i = 0; i < 300; i++)); do
  for ((j = 0; j < 10; j++)); do printf '%s ' "${words[RANDOM % 10]}"; done
  echo
done >text
"$program" prepare --text text --out data >said 2>&1 || fail "a text is prepared"
cat >config.toml <<'TOML'
[model]
layers = 2
width = 64
heads = 2
slots = 5
max_span = 48
ramp = 8
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
decay = "none"
steps = 30
[training]
batch = 8
block = 20
split = 4
validate_every = 15
validate_blocks = 2
checkpoint_every = 10
TOML
# over_both OUT OPTION...
over_both() {
  local out=$1
  shift
  ./host "$left" mpirun --hostfile hosts --mca plm_rsh_agent "$folder/agent" --mca btl tcp,self,vader \
    --mca btl_tcp_if_include 10.97.0.0/24 --mca oob_tcp_if_include 10.97.0.0/24 --mca oob_tcp_keepalive_time 5 \
    --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3 -n 4 -x ENGRAM_RANK_TIMEOUT \
    --wdir "$folder" "$program" train --config config.toml --data data --out "$out" "$@"
}

echo "== two hosts, two ranks each"
"$program" train --config config.toml --data data --out alone >said 2>&1 || fail "one process"
export ENGRAM_RANK_TIMEOUT=60
over_both both >said 2>&1 || fail "over both hosts"
grep -q '4 ranks on 2 hosts' said || fail "there must be two hosts"
cmp alone/checkpoint/model.safetensors both/checkpoint/model.safetensors || fail "the checkpoints must be equal"

# Runs without an end, which something else ends; their first steps are those of shorter runs.
endless=(--set training.validate_every=100000 training.report_every=100)
# ranks_on HOST: the processes of the program there.
ranks_on() {
  local pid
  for pid in $(ip netns pids "$1"); do
    if [[ $(readlink "/proc/$pid/exe") == "$program" ]]; then echo "$pid"; fi
  done
}
# begin OUT: sets `launcher`, and returns when there is a checkpoint.
begin() {
  over_both "$1" "${endless[@]}" --steps 100000 >said 2>&1 &
  launcher=$!
  local tries
  for ((tries = 0; tries < 600; tries++)); do
    if [[ -s $1/checkpoint/model.safetensors ]]; then break; fi
    sleep 0.1
  done
  if ((tries == 600)); then fail "no checkpoint after a minute"; fi
  began=$SECONDS
}
# ended SECONDS: the ranks are gone from both hosts by then, and mpirun with a code that is not 0.
ended() {
  local tries code=0
  for ((tries = 0; tries < $1; tries++)); do
    if [[ -z $(ranks_on "$left")$(ranks_on "$right") ]]; then break; fi
    sleep 1
  done
  if ((tries == $1)); then fail "ranks stay for $1 s"; fi
  echo "   the ranks have ended after $((SECONDS - began)) s"
  wait "$launcher" || code=$?
  if ((code == 0)); then fail "the run must fail"; fi
  echo "   mpirun has ended after $((SECONDS - began)) s"
}
# goes_on_alone OUT: one process trains on from its checkpoint, to the bytes of an undisturbed run.
goes_on_alone() {
  local step goal
  step=$(grep -a -o -m 1 '"engram.step":"[0-9]*"' "$1/checkpoint/model.safetensors" | tr -dc 0-9)
  goal=$((step + 15))
  "$program" train --config config.toml --data data --out "$1" "${endless[@]}" --steps "$goal" --resume >said 2>&1 ||
    fail "one process must go on from step $step"
  grep -q "done after $goal steps" said || fail "it must train on to step $goal"
  "$program" train --config config.toml --data data --out "$1-undisturbed" "${endless[@]}" --steps "$goal" >said 2>&1 ||
    fail "the undisturbed run"
  cmp "$1-undisturbed/checkpoint/model.safetensors" "$1/checkpoint/model.safetensors" || fail "the checkpoints must be equal"
  echo "   one process went on from step $step to $goal, to the same bytes"
}

echo "== a rank of one host is killed"
begin lost
mapfile -t there < <(ranks_on "$right")
if ((${#there[@]} != 2)); then fail "two ranks must be on the other host, got ${#there[@]}"; fi
kill -KILL "${there[RANDOM % 2]}"
ended 30
if [[ $(grep -cE 'noticed that process rank [23] .* on node .* exited on signal 9|engram: error: rank' said) != 1 ]]; then
  fail "one message must name the rank"
fi
goes_on_alone lost

echo "== the cable is cut"
export ENGRAM_RANK_TIMEOUT=5
begin cut
ip -n "$left" link set cable down
# Ranks that are waited for are given up after ENGRAM_RANK_TIMEOUT, and wait for each other's last words. mpirun and its
# daemon on the other host wait for minutes, unless they are told to look more often.
ended 60
grep -qE 'rank .* must answer within 5 s|lost communication with a remote daemon' said || fail "it must be said"
goes_on_alone cut
echo "All of it held."
