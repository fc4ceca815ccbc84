"""Alternates `engram bench` with PyTorch on the same configs and prints how many times faster and smaller Engram is."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = {"bench-a": [], "bench-b": ["--spans", "2048,32,32,32,32,32,32,32"], "bench-c": []}


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if result.returncode != 0:
        sys.exit(f"compare: {' '.join(map(str, command))} must succeed, got exit {result.returncode}\n{result.stderr}")
    return json.loads(result.stdout)


def of_engram(result):
    return result | {"median_seconds": result["milliseconds_median"] / 1e3, "resident_bytes": result["process_bytes"]}


def spread(values):
    return f"{statistics.median(values):8.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engram", default=ROOT / "build/release/apps/engram")
    parser.add_argument("--cases", default="bench-a,bench-b,bench-c")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile", action="store_true", help="also torch.compile")
    parser.add_argument("--json", default="", help="write every figure to this file")
    arguments = parser.parse_args()
    here = pathlib.Path(__file__).parent
    record = {}
    for case in arguments.cases.split(","):
        config = ROOT / "apps/configs" / f"{case}.toml"
        shared = ["--steps", str(arguments.steps), "--threads", str(arguments.threads), *CASES[case]]
        torch_command = [sys.executable, here / "train_steps.py", "--config", config, *shared]
        programs = {"engram": [arguments.engram, "bench", "--config", config, "--json", "--product-size", "1024", *shared],
                    "pytorch": torch_command}
        if arguments.compile:
            programs["pytorch, compiled"] = [*torch_command, "--compile"]
        figures = {name: [] for name in programs}
        for _ in range(arguments.rounds):
            for name, command in programs.items():
                result = run(command)
                figures[name].append(of_engram(result["configs"][0]) if name == "engram" else result)
        record[case] = figures
        milliseconds = {name: [1e3 * one["median_seconds"] for one in runs] for name, runs in figures.items()}
        memory = {name: [one["resident_bytes"] / 2**20 for one in runs] for name, runs in figures.items()}
        print(f"{case}, {arguments.threads} threads, medians of {arguments.steps} steps in {arguments.rounds} rounds")
        for name in programs:
            print(f"  {name:18} {spread(milliseconds[name])} ms a step, {spread(memory[name])} MiB")
        for name in programs:
            if name != "engram":
                faster = [other / own for own, other in zip(milliseconds["engram"], milliseconds[name])]
                smaller = [own / other for own, other in zip(memory["engram"], memory[name])]
                print(f"  against {name}: {spread(faster)} times as fast, {spread(smaller)} of the memory", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
