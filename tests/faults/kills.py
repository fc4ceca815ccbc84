#!/usr/bin/env python3
"""Kills the program at random moments of everything that it makes, and says what became of it (tests/kill.sh)."""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from setting import Broken, Setting, file_cases, training_cases


def ranks_below(process):
    """The processes that a launcher started, which are the program's."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == process.pid:
                if (entry / "comm").read_text().strip() == "engram":
                    found.append(int(entry.name))
        except (OSError, IndexError):
            continue
    return found


def wait_for_ranks(out):
    """Until no process of the program works in a folder: who is killed may be the launcher, whose ranks live on a while."""
    ends = time.monotonic() + 120
    while True:
        working = False
        for entry in Path("/proc").iterdir():
            try:
                working = working or entry.name.isdigit() and (
                    (entry / "comm").read_text().strip() == "engram" and os.fsencode(out) in (entry / "cmdline").read_bytes())
            except OSError:  # it has ended meanwhile
                continue
        if not working:
            return
        if time.monotonic() > ends:
            raise Broken("ranks live on for two minutes after a kill")
        time.sleep(0.05)


class Round:
    """One case's kills: a folder, a stream of random numbers of its own, and what was seen."""

    def __init__(self, setting, case, folder, seed):
        self.setting, self.case, self.out = setting, case, folder / "killed"
        self.draw = random.Random(seed)
        self.kills = self.late = self.resumed = self.anew = 0
        case.prepare(setting, folder)
        began = time.monotonic()
        case.fresh(setting, self.out, True)
        case.compare(case.finish(setting, self.out))  # it has the same bits every time, or nothing could be compared
        self.seconds = time.monotonic() - began

    def kill_once(self):
        """Starts it and kills it after a random time. False: it had ended before."""
        process = self.setting.start(self.case.next_arguments(self.out), launcher=self.case.launcher)
        drain = threading.Thread(target=process.communicate, daemon=True)
        drain.start()
        time.sleep(self.draw.uniform(0, self.seconds))
        victims = ranks_below(process) if self.case.launcher else [process.pid]
        victim = self.draw.choice(victims or [process.pid])
        if drain.is_alive():
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
        drain.join(120)
        if drain.is_alive():
            process.kill()
            raise Broken("it hangs after a kill")
        if self.case.launcher:
            wait_for_ranks(self.out)
        if process.returncode == 0:
            return False
        if not self.case.launcher and process.returncode != -signal.SIGKILL:
            raise Broken(f"it ended by itself, with {process.returncode}")
        return True

    def go(self, most):
        """Up to three kills of one beginning, or `most`, and then the end, which must be the undisturbed one."""
        self.case.fresh(self.setting, self.out, self.draw.random() < 0.5)
        done = 0
        for _ in range(min(most, 1 + self.draw.randrange(3))):
            if not self.kill_once():
                self.late += 1
                self.case.fresh(self.setting, self.out, self.draw.random() < 0.5)
                continue
            done += 1
            self.case.check_between(self.out)
            whole = self.case.is_whole(self.out)
            if "--resume" in self.case.next_arguments(self.out):
                self.resumed += 1
            else:
                self.anew += not whole
            if whole:
                break
        self.case.compare(self.case.finish(self.setting, self.out))
        self.kills += done
        return done


def work(rounds, failures, guard):
    """Takes the cases in turns."""
    while True:
        with guard:
            if failures or not rounds:
                return
            one = rounds.pop(0)
        try:
            one.left -= one.go(one.left)
        except Exception as error:  # of the test's own too: a worker that ends must not look like one that is done
            with guard:
                failures.append(f"{one.case.name}, after {one.kills} kills: {error}")
            return
        with guard:
            if one.left > 0:
                rounds.append(one)
            else:
                print(f"   {one.case.name}: {one.kills} kills", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=0, help="0: another one every time")
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--without", default="no case", help="not those whose names have this in them, such as 'ranks'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    seed = options.seed or random.SystemRandom().randrange(1, 1 << 31)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="engram-kills.") as folder:
        folder = Path(folder)
        setting = Setting(options.program, folder, {
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "ENGRAM_RANK_TIMEOUT": "60"})
        mpi = shutil.which("mpirun") if "MPI" in setting.must("--version").split("features")[1].split("\n")[0] else None
        cases = [case for case in training_cases(mpi) + file_cases() if options.only in case.name and options.without not in case.name]
        print(f"{options.kills} kills in {len(cases)} cases, seed {seed}"
              f"{'' if mpi else '; no ranks, as there is no MPI'}", flush=True)
        rounds = []
        for i, case in enumerate(cases):
            one = Round(setting, case, folder / f"case-{i}", seed * 1000 + i)
            one.left = options.kills // len(cases) + (i < options.kills % len(cases))
            rounds.append(one)
        failures, guard = [], threading.Lock()
        waiting = [one for one in rounds if one.left > 0]
        workers = [threading.Thread(target=work, args=(waiting, failures, guard)) for _ in range(options.jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print(f"\n{'case':32} {'kills':>6} {'resumed':>8} {'anew':>6} {'too late':>9}  result")
        for one in rounds:
            print(f"{one.case.name:32} {one.kills:6} {one.resumed:8} {one.anew:6} {one.late:9}  "
                  f"{'the same' if one.left <= 0 else 'stopped'}")
        total = sum(one.kills for one in rounds)
        print(f"{'all':32} {total:6} {sum(one.resumed for one in rounds):8} {sum(one.anew for one in rounds):6} "
              f"{sum(one.late for one in rounds):9}  in {time.monotonic() - began:.0f} s")
        for failure in failures:
            print(f"tests/kill.sh: seed {seed}: {failure}", file=sys.stderr)
        return 1 if failures or total < options.kills else 0


if __name__ == "__main__":
    sys.exit(main())
