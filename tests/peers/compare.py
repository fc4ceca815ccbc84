"""Alternates `engram bench` with PyTorch on the same configs and prints how many times faster and smaller Engram is:
training steps, then evaluation through caches beside a plain model's, then generation through caches of keys and values of
both, then training steps of a memory layer alone."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from engram_files import read_config

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = {"bench-a": [], "bench-b": ["--spans", "2048,32,32,32,32,32,32,32"], "bench-c": [], "bench-xl": [],
         "bench-product-key": [], "bench-lstm": [], "bench-key-value-predict": []}


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if result.returncode != 0:
        sys.exit(f"compare: {' '.join(map(str, command))} must succeed, got exit {result.returncode}\n{result.stderr}")
    return json.loads(result.stdout)


def of_engram(result):
    return result | {"median_seconds": result["milliseconds_median"] / 1e3, "resident_bytes": result["process_bytes"]}


def spread(values):
    return f"{statistics.median(values):8.2f} ({min(values):.2f} to {max(values):.2f})"


def commands_of(case, arguments, own, *theirs):
    """Of Engram and of PyTorch for one config, with the options that only one of them has."""
    config = ROOT / "apps/configs/bench" / f"{case}.toml"
    shared = ["--config", config, "--steps", str(arguments.steps), "--threads", str(arguments.threads)]
    peer = [sys.executable, pathlib.Path(__file__).parent / "train_steps.py", *shared]
    return ([arguments.engram, "bench", "--json", "--product-size", "1024", *shared, *own],
            *([*peer, *options] for options in theirs))


def print_ratios(name, own, others, what):
    print(f"  against {name}: {spread([other / one for one, other in zip(own, others)])} {what}", flush=True)


def compare_training(case, dtype, arguments):
    """With products of f32 operands, or of bf16 ones: --dtype bf16 of both, torch.autocast of PyTorch."""
    compiled = [["--compile"]] if arguments.compile else []
    own = [*CASES[case], "--dtype", dtype]
    commands = commands_of(case, arguments, own, own, *([*own, *options] for options in compiled))
    programs = dict(zip(["engram", "pytorch", "pytorch, compiled"], commands))
    figures = {name: [] for name in programs}
    for _ in range(arguments.rounds):
        for name, command in programs.items():
            result = run(command)
            figures[name].append(of_engram(result["configs"][0]) if name == "engram" else result)
    milliseconds = {name: [1e3 * one["median_seconds"] for one in runs] for name, runs in figures.items()}
    memory = {name: [one["resident_bytes"] / 2**20 for one in runs] for name, runs in figures.items()}
    print(f"{case}, {dtype}, {arguments.threads} threads, medians of {arguments.steps} steps in {arguments.rounds} rounds")
    for name in programs:
        print(f"  {name:18} {spread(milliseconds[name])} ms a step, {spread(memory[name])} MiB")
    for name in programs:
        if name != "engram":
            print_ratios(name, milliseconds["engram"], milliseconds[name], "times as fast")
            print_ratios(name, memory[name], memory["engram"], "of the memory")
    return figures


def print_table(record):
    """Of all training steps: how many times as fast Engram is, and bf16 of it."""
    rows = {key: {name: statistics.median(1e3 * one["median_seconds"] for one in runs) for name, runs in figures.items()}
            for key, figures in record.items()}
    print("\n| training step | products | Engram, ms | PyTorch, ms | times as fast | share of the product rate "
          "| times Engram's f32 |")
    print("|---|---|---|---|---|---|---|")
    for (case, dtype), row in rows.items():
        share = statistics.median(one["share_of_product_rate"] for one in record[case, dtype]["engram"])
        plain = rows.get((case, "f32"))
        over = f"{plain['engram'] / row['engram']:.2f}" if plain and dtype != "f32" else ""
        print(f"| {case} | {dtype} | {row['engram']:.0f} | {row['pytorch']:.0f} | {row['pytorch'] / row['engram']:.2f} "
              f"| {100 * share:.0f}% | {over} |", flush=True)


def compare_evaluation(case, arguments):
    """Engram through its caches, with the memories that `engram bench --inference` takes; PyTorch then has the same."""
    config = read_config(ROOT / "apps/configs/bench" / f"{case}.toml")
    if config["model"]["family"] != "transformer_xl":
        sys.exit(f"compare: --evaluations knows only models of family transformer_xl, got '{case}'")
    figures = []
    for _ in range(arguments.rounds):
        (engram,) = commands_of(case, arguments, ["--inference"])
        for block in run(engram)["inference"][0]["blocks"]:
            memory = round(block["block"] * block["cached_blocks"])
            _, pytorch = commands_of(case, arguments, [], ["--evaluate", "--memory", str(memory)])
            figures.append({"memory": memory, "engram": block, "pytorch": run(pytorch)})
    print(f"{case}, evaluation, {arguments.threads} threads, medians of {arguments.steps} blocks in "
          f"{arguments.rounds} rounds")
    for memory in dict.fromkeys(one["memory"] for one in figures):
        rounds = [one for one in figures if one["memory"] == memory]
        own = [one["engram"]["milliseconds_frozen"] for one in rounds]
        other = [1e3 * one["pytorch"]["median_seconds"] for one in rounds]
        saved = [one["engram"]["saving"] for one in rounds]
        print(f"  memory {memory}: engram {spread(own)} ms a block, pytorch {spread(other)} ms a block")
        print(f"  caches save {spread(saved)}, by the formulas {rounds[0]['engram']['saving_by_formulas']:.2f}")
        print_ratios("pytorch", own, other, "times as fast")
    return figures


def compare_generation(case, arguments):
    """Prompts and continuation of one stream and of 64, both programs with caches of keys and values."""
    figures = []
    for _ in range(arguments.rounds):
        (engram,) = commands_of(case, arguments, ["--inference"])
        for rate in run(engram)["inference"][0]["generation"]["rates"]:
            for what, length in (("prompt", rate["prompt"]), ("token", 1)):
                # Prompts of many streams take PyTorch minutes.
                steps = arguments.steps * 16 if what == "token" else arguments.steps if rate["streams"] == 1 else 1
                _, pytorch = commands_of(case, arguments, [], ["--generate", "--batch", str(rate["streams"]), "--length",
                                                               str(length), "--steps", str(steps)])
                figures.append({"streams": rate["streams"], "what": what, "length": length,
                                "engram": rate[f"milliseconds_a_{what}"], "pytorch": 1e3 * run(pytorch)["median_seconds"]})
    return figures


def print_generation(record):
    print("\n| generation | streams | what | Engram, ms | tokens/s | PyTorch, ms | times as fast |")
    print("|---|---|---|---|---|---|---|")
    for case, figures in record.items():
        for streams, what, length in dict.fromkeys((one["streams"], one["what"], one["length"]) for one in figures):
            rows = [one for one in figures if (one["streams"], one["what"]) == (streams, what)]
            own, other = (statistics.median(row[name] for row in rows) for name in ("engram", "pytorch"))
            said = f"a prompt of {length}" if what == "prompt" else "a token"
            print(f"| {case} | {streams} | {said} | {own:.2f} | {1e3 * streams * length / own:.0f} | {other:.2f} "
                  f"| {other / own:.2f} |", flush=True)


def compare_memory(slots, arguments):
    """The layer alone, 1024 wide with 4 x 32 reads a token: forward, backward, update."""
    shared = ["--slots", slots, "--steps", str(arguments.steps), "--threads", str(arguments.threads)]
    programs = {"engram": [arguments.engram, "bench", "--json", "--memory", "--parts", "training", "--product-size",
                           "1024", *shared],
                "pytorch": [sys.executable, pathlib.Path(__file__).parent / "product_key.py", *shared]}
    figures = {name: [] for name in programs}
    for _ in range(arguments.rounds):
        for name, command in programs.items():
            result = run(command)
            if name == "engram":
                result = next((one for one in result["memory"]["training"] if one["rule"] == "adam lazy"), None)
                if result is None:
                    print(f"compare: there is no memory for a table of {slots} slots with Adam's state: left out")
                    return None
                result |= {"milliseconds": result["milliseconds"]["median"]}
            figures[name].append(result)
    milliseconds = {name: [one["milliseconds"] for one in runs] for name, runs in figures.items()}
    print(f"a memory of {slots} slots alone, {arguments.threads} threads, medians of {arguments.steps} steps in "
          f"{arguments.rounds} rounds")
    for name in programs:
        print(f"  {name:18} {spread(milliseconds[name])} ms a step")
    print_ratios("pytorch", milliseconds["engram"], milliseconds["pytorch"], "times as fast")
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engram", default=ROOT / "build/program/apps/engram")
    parser.add_argument("--cases", default=None, help="training steps [all: " + ",".join(CASES) + "]")
    parser.add_argument("--evaluations", default="bench-xl", help="blocks with frozen weights")
    parser.add_argument("--generations", default="bench-a,bench-c,bench-xl,bench-lstm,bench-key-value-predict",
                        help="prompts and continuation")
    parser.add_argument("--memories", default=None, help="slots of memory layers alone [65536,262144; with --cases none]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtypes", default="f32,bf16", help="operands of the training steps' products")
    parser.add_argument("--compile", action="store_true", help="also torch.compile")
    parser.add_argument("--json", default="", help="write every figure to this file")
    arguments = parser.parse_args()
    cases = ",".join(CASES) if arguments.cases is None else arguments.cases
    memories = arguments.memories
    if memories is None:
        memories = "65536,262144" if arguments.cases is None else ""
    training = {(case, dtype): compare_training(case, dtype, arguments) for case in filter(None, cases.split(","))
                for dtype in arguments.dtypes.split(",")}
    if training:
        print_table(training)
    record = {f"{case}, {dtype}": figures for (case, dtype), figures in training.items()}
    for case in filter(None, arguments.evaluations.split(",")):
        record[f"{case}, evaluation"] = compare_evaluation(case, arguments)
    generations = {case: compare_generation(case, arguments) for case in filter(None, arguments.generations.split(","))}
    if generations:
        print_generation(generations)
    record |= {f"{case}, generation": figures for case, figures in generations.items()}
    for slots in filter(None, memories.split(",")):
        record[f"memory of {slots} slots"] = compare_memory(slots, arguments)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
