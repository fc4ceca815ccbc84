#!/usr/bin/env python3
"""Long runs in miniature: tiny models of every family make millions of steps, with validations, checkpoints and reports
on the way. Memory of the process and its open files must stay flat; processor time of a step is drawn beside them.

    python3 tests/faults/long_runs.py STEPS PROGRAM [--svg FILE] [--only FAMILY]

STEPS are each family's. Memory may grow by 256 KiB from the first third of a run, but its first tenth, to the last third;
open files may not.
Times are printed and drawn, and never judged. Exit code 1: something grew."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from setting import words

GROWTH = 256  # KiB
REPORTS = 400
MODEL = "[model]\nlayers = 1\nwidth = 8\nheads = 1\n"
FAMILIES = {
    "all-attention": MODEL + "slots = 2\nmax_span = 8\nramp = 2\ndropout = 0.1\n",
    "transformer-xl": MODEL + 'family = "transformer_xl"\ninner = 8\nmemory = 8\nmemory_start = "zeros"\n',
    "product-key": MODEL + 'family = "product_key"\nposition_rows = 16\n[product_key]\nlayers = [1]\nsubkeys = 4\nheads = 1\n'
                   "selected = 2\nquery_width = 4\n",
    "recurrent": '[model]\nfamily = "recurrent"\nembedding_width = 8\nwidth = 9\nreadout = "key_value_predict"\nwindow = 2\n'}
TICK = os.sysconf("SC_CLK_TCK")


def config(model, steps):
    every = max(1, steps // 100)
    return (f'{model}[optimizer]\nkind = "adam"\nclip = 1.0\n[schedule]\nrate = 0.0002\nsteps = {steps}\n[training]\nbatch = 2\n'
            f"block = 8\nsplit = 1\nseed = 1\nvalidate_every = {every}\nvalidate_blocks = 1\n"
            f"report_every = {max(1, steps // REPORTS)}\ncheckpoint_every = {every}\n")


def look(process):
    """KiB in memory, open files, and seconds of processor time of a process, now."""
    folder = Path(f"/proc/{process}")
    memory = next(int(line.split()[1]) for line in (folder / "status").read_text().splitlines() if line.startswith("VmRSS"))
    times = (folder / "stat").read_text().rsplit(")", 1)[1].split()
    return memory, len(os.listdir(folder / "fd")), (int(times[11]) + int(times[12])) / TICK


def train(program, folder, name, steps, env):
    """Trains it, and returns what was seen on the way: (step, KiB, files, seconds of processor time)."""
    file = folder / f"{name}.toml"
    file.write_text(config(FAMILIES[name], steps))
    run = folder / name
    process = subprocess.Popen([program, "train", "--config", file, "--data", folder / "data", "--out", run], env=env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(folder / "said").open("w"))
    seen, read, step = [], 0, 0
    while process.poll() is None:
        time.sleep(0.02)
        log = run / "metrics.jsonl"
        if not log.exists():
            continue
        with log.open() as lines:
            lines.seek(read)
            fresh = lines.read()
        whole = fresh[:fresh.rfind("\n") + 1]
        read += len(whole.encode())
        reached = [json.loads(line)["step"] for line in whole.splitlines() if '"event":"train"' in line.replace(" ", "")]
        if reached and reached[-1] > step:
            step = reached[-1]
            try:
                seen.append((step, *look(process.pid)))
            except (OSError, StopIteration):  # it has just ended
                break
    if process.wait() != 0:
        said = (folder / "said").read_text().splitlines()
        raise SystemExit("\n".join([f"exit {process.returncode} of {name}", *said[-5:]]))
    return seen


def between(seen, begin, end):
    return [one for one in seen if begin <= one[0] < end]  # behind the last step the process puts its things away


def microseconds(part):
    """Of processor time for a step, between the first and the last look."""
    return (part[-1][3] - part[0][3]) / max(1, part[-1][0] - part[0][0]) * 1e6


def write_log(run, seen):
    """What was seen, as a log that `engram figure curves` draws; but the last look, when it may put its things away."""
    seen = seen[:-1]
    lines = [{"event": "start", "step": 0}]
    for before, now in zip(seen, seen[1:]):
        if now[3] > before[3]:
            lines.append({"event": "train", "step": now[0], "mib": now[1] / 1024, "files": now[2],
                          "microseconds": (now[3] - before[3]) / (now[0] - before[0]) * 1e6})
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", type=int)
    parser.add_argument("program")
    parser.add_argument("--svg", help="draw it")
    parser.add_argument("--only", choices=FAMILIES)
    arguments = parser.parse_args()
    program, steps = str(Path(arguments.program).resolve()), arguments.steps
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "LC_ALL": "C"}
    grown = 0
    drawn = []
    with tempfile.TemporaryDirectory(prefix="engram-long-runs.") as name:
        folder = Path(name)
        # Of words that nobody can foresee: a text that can be learned by heart makes Adam's steps wild in the end.
        (folder / "text").write_text(words(20000, 1))
        subprocess.run([program, "prepare", "--text", folder / "text", "--out", folder / "data"], env=env, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"{'family':<16} {'steps':>9} {'seen':>5} {'MiB':>14} {'files':>9} {'us a step':>15}")
        for family in [arguments.only] if arguments.only else FAMILIES:
            seen = train(program, folder, family, steps, env)
            early, late = between(seen, steps / 10, steps / 3), between(seen, steps * 2 / 3, steps)
            if not early or not late:
                raise SystemExit(f"{family}: both thirds of the run must be looked at, got {len(early)} and {len(late)} looks: "
                                 "more STEPS")
            # What is lost stays: the least of the last third has it too, and is none of a save's own.
            memory = [max(one[1] for one in early), min(one[1] for one in late)]
            files = [max(one[2] for one in early), min(one[2] for one in late)]
            times = [microseconds(part) for part in (early, late)]
            wrong = []
            if memory[1] > memory[0] + GROWTH:
                wrong.append("memory grows")
            if files[1] > files[0]:
                wrong.append("open files grow")
            grown += len(wrong)
            print(f"{family:<16} {steps:>9} {len(seen):>5} {memory[0] / 1024:6.2f}, {memory[1] / 1024:6.2f} "
                  f"{files[0]:4}, {files[1]:3} {times[0]:7.1f}, {times[1]:6.1f}  {', '.join(wrong)}", flush=True)
            write_log(folder / family, seen)
            drawn.append(str(folder / family))
        if arguments.svg:
            subprocess.run([program, "figure", "curves", *drawn, "--metric",
                            "train_mib,train_files,train_microseconds", "--name",
                            ",".join(Path(run).name for run in drawn), "--smooth", "9", "--width", "170mm", "--plain",
                            "--out", arguments.svg], env=env, check=True, stdout=subprocess.DEVNULL)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
