# A part of tests/ranks.sh: runs that are stopped by signals save, and lose nothing.

open_mpi=0
if mpirun --version 2>/dev/null | grep -qE 'Open MPI|OpenRTE|PRRTE'; then open_mpi=1; fi

echo "== stopped by a signal to mpirun, and gone on with"
three=(--set training.batch=12 training.split=3)
# stopped_by SIGNAL: sets `code`, what mpirun ended with.
stopped_by() {
  rm -rf stopped
  start 3 stopped "${three[@]}"
  kill -"$1" "$launcher"
  code=0
  wait "$launcher" || code=$?
  if ((code == 0)); then fail "$1 must stop the run"; fi
  if grep -q 'engram: error' said; then fail "$1 is no error"; fi
}
saves() {
  if [[ $(grep -c 'engram: interrupted at step .*, saved; --resume goes on from there' said) != 1 ]]; then
    fail "$1 must save, and say so once"
  fi
  local said_step
  said_step=$(sed -nE 's/.*interrupted at step ([0-9]+), saved.*/\1/p' said)
  if [[ $(step_of stopped) != "$said_step" ]]; then fail "$1 must save the step that it says"; fi
}
goes_on() {
  set_goal stopped
  train "$1" stopped "${endless[@]}" "${three[@]}" --steps "$goal" --resume || fail "resumed after $2"
  undisturbed "${three[@]}"
  same_end stopped "stopped by $2 must be undisturbed"
}
stopped_by USR1
if ((code != 130)); then fail "USR1 must end as one process does, with 130, got $code"; fi
saves USR1
# A second is what Open MPI gives them.
stopped_by INT
goes_on 1 INT
if ((open_mpi)); then
  # mpirun waits for the whole of its patience, twice, whatever the ranks need.
  signals=(TERM)
  if ((by_night)); then signals=(HUP INT TERM); fi
  for signal in "${signals[@]}"; do
    began=$SECONDS
    OMPI_MCA_odls_base_sigkill_timeout=5 PRTE_MCA_odls_base_sigkill_timeout=5 stopped_by "$signal"
    if ((SECONDS - began > 30)); then fail "$signal must stop what is saved, got $((SECONDS - began)) s"; fi
    saves "$signal, where mpirun has patience,"
  done
else
  stopped_by TERM
fi
goes_on 3 TERM
