"""Times training steps on a card: `engram bench --device cuda`, and PyTorch models of the same equations in the same run.
Prints one table and writes it, with every figure, to the results folder."""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Name, config, rows of a step, spans of the heads, whether PyTorch takes part.
CASES = [
    ("all-attention large, spans 256", "all-attention/enwik8-all-attention-large", 16, "256", True),
    ("bench-a", "bench/bench-a", 4, "", True),
    ("6 layers, d 256, 8 x 128", "bench/bench-small", 8, "", False),
]
# The targets of a row kernel are bytes over the card's copy rate.
ROW_KERNELS = ("layer_norm", "softmax", "cross_entropy", "adagrad", "adam", "dropout", "bias", "pointwise")


def run(command):
    """The last line of what a command prints, as JSON; what it says on the way to failing as text."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT, check=False)
    if result.returncode != 0:
        lines = (result.stderr or result.stdout).strip().splitlines()
        return next((line for line in reversed(lines) if "out of memory" in line.lower()), lines[-1] if lines else "?")
    return json.loads(result.stdout)


def engram_rows(name, what, result, limits, lines):
    one = result["configs"][0]
    rate = limits["bf16_product_flops_per_second"]
    lines.append(f"{name}: engram, bf16 {what}: {one['milliseconds_median']:.1f} ms a step, "
                 f"{one['tokens_per_second']:.0f} tokens/s, {100 * one['flops_per_second'] / rate:.1f}% of the product "
                 f"rate, {one['device_bytes'] / 2**30:.2f} GiB on the card")
    if one["milliseconds_one_by_one"] > 0:
        lines.append(f"  kernels handed over one by one: {one['milliseconds_one_by_one']:.1f} ms, "
                     f"{one['milliseconds_one_by_one'] / one['milliseconds_median']:.2f} times as long as replayed")
    for kernel in one["kernels"]:
        if "milliseconds_floor" not in kernel or kernel["share"] < 0.005:
            continue
        share = 100 * kernel["milliseconds_floor"] / kernel["milliseconds_per_step"]
        what = "of the copy rate" if kernel["kernel"].startswith(ROW_KERNELS) else "of its limit"
        lines.append(f"  {kernel['kernel']:28} {kernel['milliseconds_per_step']:9.3f} ms, {share:5.1f}% {what}")
    return one


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engram", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    results = pathlib.Path(arguments.results)
    card = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                          capture_output=True, text=True, check=False).stdout.strip()
    lines = [f"{card or 'no card'}; {datetime.date.today()}"]
    record = {"card": card}
    has_torch = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    if not has_torch:
        lines.append(f"PyTorch was not found in {sys.executable}: no comparison")
    for name, config, batch, spans, with_torch in CASES:
        path = ROOT / "apps/configs" / f"{config}.toml"
        shared = ["--steps", arguments.steps, "--device", "cuda", "--dtype", "bf16", *(["--spans", spans] if spans else [])]
        # Products of f32 activations round both operands anew; activations of bf16 need no rounding and half the bytes.
        both = {}
        for what, activations in (("products", "f32"), ("activations", "bf16")):
            both[what] = run([arguments.engram, "bench", "--config", path, "--set", f"training.batch={batch}", "--set",
                              "training.split=1", "--set", f"training.activations={activations}", "--product-size", 8192,
                              "--json", *shared])
            if isinstance(both[what], str):
                sys.exit(f"bench: {name}: bf16 {what}: {both[what]}")
        record[name] = {"engram": both["products"], "engram_bf16_activations": both["activations"]}
        limits = both["products"]["machine"]
        if name == CASES[0][0]:
            lines.append(f"products: f32 {limits['product_flops_per_second'] / 1e12:.1f}, bf16 "
                         f"{limits['bf16_product_flops_per_second'] / 1e12:.1f} TFLOP/s; copies "
                         f"{limits['copy_bytes_per_second'] / 1e9:.0f} GB/s")
        for what, ours in both.items():
            mine = engram_rows(name, what, ours, limits, lines)  # the last is compared with PyTorch, which casts too
        for kind in (["eager", "compile"] if with_torch and has_torch else []):
            theirs = run([sys.executable, ROOT / "tests/peers/train_steps.py", "--config", path, "--batch", batch, *shared,
                          *(["--compile"] if kind == "compile" else [])])
            record[name][kind] = theirs
            if isinstance(theirs, str):
                lines.append(f"  PyTorch {kind}: {theirs}")
                continue
            lines.append(f"  PyTorch {theirs['torch']} {kind}: {1e3 * theirs['median_seconds']:.1f} ms, "
                         f"{theirs['tokens_per_second']:.0f} tokens/s, {theirs['device_bytes'] / 2**30:.2f} GiB; engram is "
                         f"{1e3 * theirs['median_seconds'] / mine['milliseconds_median']:.2f} times as fast")
    table = "\n".join(lines)
    print(table)
    (results / "table.txt").write_text(table + "\n")
    (results / "figures.json").write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
