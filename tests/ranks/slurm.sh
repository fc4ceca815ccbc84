# A part of tests/ranks.sh: apps/train.sbatch under commands that do what Slurm's would: srun starts the tasks, each with
# Slurm's variables, and ends with the code of the first that fails; scontrol puts the job into the queue again. Slurm
# itself, which runs the script and signals tasks, is this part.

echo "== a job of Slurm: near its end, pre-empted, on a machine that fails"
mkdir slurm
cat >slurm/srun <<'SCRIPT'
#!/usr/bin/env bash
printf '%s\n' "$@" >srun.words
while [[ $1 == --* ]]; do shift; done
# Else Open MPI would ask Slurm for its machines.
for name in ${!SLURM_@}; do hidden+=(-u "$name"); done
exec env "${hidden[@]}" "JOB=$SLURM_JOB_ID" mpirun -n "$SLURM_NTASKS" "$PWD/slurm/task" "$@"
SCRIPT
cat >slurm/task <<'SCRIPT'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?}} ranks=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:?}}
export SLURM_JOB_ID=$JOB SLURM_STEP_ID=0 SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_STEP_NUM_TASKS=$ranks
exec "$@"
SCRIPT
cat >slurm/scontrol <<'SCRIPT'
#!/usr/bin/env bash
printf '%s\n' "$*" >>scontrol.words
SCRIPT
chmod +x slurm/*

# run_job RANKS: what Slurm does when it is the job's turn. Sets `launcher`.
restarts=0
run_job() {
  rm -f scontrol.words srun.words
  # As the shell of a batch has it: its own process is no task of a step.
  env "PATH=$folder/slurm:$PATH" "ENGRAM=$program" SLURM_JOB_ID=7 SLURM_NTASKS="$1" SLURM_CPUS_PER_TASK=1 SLURM_PROCID=0 \
    SLURM_STEP_ID=4294967291 SLURM_RESTART_COUNT="$restarts" \
    bash "$root/apps/train.sbatch" job.toml characters "$folder/job" --set training.report_every=100 >said 2>&1 &
  launcher=$!
  restarts=$((restarts + 1))
}
# with_steps N: the job's configuration, in which the user may change how long it trains.
with_steps() {
  sed -E "s/^steps = .*/steps = $1\nwarmup = 0\ndecay = \"none\"/; s/^(checkpoint_every) = .*/\1 = 20/;
    s/^(validate_every) = .*/\1 = 100000/" all_attention.toml >job.toml
}
# trains_on: waits until the job's tasks are at work; sets `pids`.
trains_on() {
  local before=$1 tries
  for ((tries = 0; tries < 600; tries++)); do
    if [[ -s job/checkpoint/model.safetensors ]] && (($(step_of job) > before)); then break; fi
    if ! kill -0 "$launcher" 2>/dev/null; then fail "the job has ended"; fi
    sleep 0.05
  done
  if ((tries == 600)); then fail "the job has no newer checkpoint after 30 s"; fi
  ranks_of job
}
ends_saved() {
  local code=0
  wait "$launcher" || code=$?
  if ((code != 130)); then fail "after $1 the job must end with 130, got $code"; fi
  grep -q 'engram: interrupted at step .*, saved' said || fail "$1 must save"
  grep -q 'train.sbatch: saved before the end; the job goes into the queue again' said || fail "$1: the script must say so"
  if [[ $(cat scontrol.words 2>/dev/null) != 'requeue 7' ]]; then fail "$1: the job must go into the queue again"; fi
}
with_steps 100000
run_job 4
trains_on 0
if grep -qx -- --resume srun.words; then fail "a job that begins has nothing to resume"; fi
for word in --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=1; do
  grep -qx -- "$word" srun.words || fail "srun must be told $word"
done
grep -q '4 ranks on 1 host' said || fail "the tasks must find each other"
kill -USR1 "${pids[@]}"  # 300 seconds before the time is over
ends_saved USR1

run_job 4
trains_on "$(step_of job)"
grep -qx -- --resume srun.words || fail "a job that goes on must resume"
kill -TERM "${pids[@]}"  # pre-empted
ends_saved TERM

run_job 4
trains_on "$(step_of job)"
kill -KILL "${pids[@]}"  # a machine fails; Slurm puts the job into the queue by itself
code=0
wait "$launcher" || code=$?
if ((code == 0 || code == 130)); then fail "killed tasks must fail the job, got $code"; fi
if [[ -e scontrol.words ]]; then fail "the script must not ask for what Slurm does"; fi

set_goal job
with_steps "$goal"
run_job 2  # fewer are free now
wait "$launcher" || fail "the job must come to its end"
if [[ -e scontrol.words ]]; then fail "a job that is done needs no queue"; fi
"$program" train --out job-alone --config job.toml --data characters --set training.report_every=100 >said 2>&1 ||
  fail "the job's training by one process"
cmp job-alone/checkpoint/model.safetensors job/checkpoint/model.safetensors || fail "the queue left its mark"

echo "== a job with too little to go on"
code=0
ENGRAM=$program bash "$root/apps/train.sbatch" job.toml >said 2>&1 || code=$?
if ((code != 2)); then fail "a job without data must be refused with 2, got $code"; fi
grep -q 'CONFIG.toml, DATA_DIR and RUN_DIR must be given, got 1' said || fail "it must say what is missing"
