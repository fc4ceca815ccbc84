"""Holds what nvcc made of the kernels against a table: registers, stack, spills, calls, f64 instructions, the width of
accesses to memory, and for kernels with products on tensor cores the instructions of a block of them.

    python3 tests/gpu/budgets/check.py [--nvcc NVCC] [--update] OBJECTS...

No card is needed. NVIDIA's cuobjdump and nvdisasm are looked for in the folder ENGRAM_DISASSEMBLER names, beside nvcc,
and in PATH. --update writes table.txt anew."""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sass

TABLE = pathlib.Path(__file__).with_name("table.txt")
SKIPPED = 77
# Numbers of a line: name, and whether more of it is worse. Of the widest accesses, less is.
NUMBERS = [("registers", True), ("stack", True), ("spills", True), ("calls", True), ("f64", True), ("load", False),
           ("store", False)]
TYPES = {"float", "double", "bf16", "int", "long", "unsigned", "char", "short", "bool", "true", "false"}
HEADER = """\
# What nvcc {release} makes of the kernels for {architecture}: written by tests/gpu/budgets/check.py --update.
# At most: registers of a thread, as the card hands them out (8 at a time); stack, bytes; spills, instructions; calls;
# f64 instructions. At least: bits of the widest load from and store to the card's memory. block: at most so many
# instructions a warp executes for a 16x16 block of scores, loop by loop (context, slots), with its share of loading
# tiles, or for four blocks of 16x16x16 of the past's products; +n: besides n loops that count once. Then kernel and
# instantiations. Those of f64 serve tests and are left out.
"""


def skip(reason):
    print(f"Skipped: {reason}")
    sys.exit(SKIPPED)


def find_tools(nvcc):
    folders = [os.environ.get("ENGRAM_DISASSEMBLER"), str(pathlib.Path(nvcc).parent) if nvcc else None]
    path = os.pathsep.join([folder for folder in folders if folder] + [os.environ.get("PATH", "")])
    tools = [shutil.which(tool, path=path) for tool in ("cuobjdump", "nvdisasm")]
    if None in tools:
        skip("cuobjdump and nvdisasm must be in ENGRAM_DISASSEMBLER, beside nvcc or in PATH; the CUDA Toolkit has them, "
             "and so have the Python packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm, in nvidia/*/bin")
    return tools


def run(command, folder=None):
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def short_name(name):
    """void engram::cuda::(anonymous namespace)::f<float, g<4> >(int) -> ("f g", "float,4")."""
    for part in ("(anonymous namespace)::", "engram::cuda::", "on_card::", "engram::"):
        name = name.replace(part, "")
    name = re.sub(r"^void ", "", name)
    depth = 0
    for end, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            name = name[:end]
            break
    names, leaves = [], []
    for word in re.findall(r"[\w:]+", re.sub(r"\([\w:]+\)", "", name)):
        leaves.append(word) if word in TYPES or word.isdigit() else names.append(word)
    return " ".join(names), ",".join(leaves)


def read_object(tools, source):
    """{(kernel, instantiation): numbers} of the machine code in one object file, and its architecture."""
    cuobjdump, nvdisasm = tools
    usage, architectures = {}, set()
    lines = run([cuobjdump, "-res-usage", str(source)]).splitlines()
    for name, used in zip(lines, lines[1:]):
        if name.startswith(" Function "):
            usage[name[10:].rstrip(":")] = {key: int(value) for key, value in re.findall(r"([A-Z]+):(\d+)", used)}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        run([cuobjdump, "-xelf", "all", str(source.resolve())], folder)
        for code in pathlib.Path(folder).iterdir():
            architectures.add(code.name.split(".")[-2])
            kernels = sass.kernels(run([nvdisasm, "-c", str(code)]).splitlines())
            readable = run(["c++filt", *kernels]).splitlines() if kernels else []
            for (mangled, kernel), name in zip(kernels.items(), readable):
                if "cub::" in name or "thrust::" in name or mangled not in usage:
                    continue
                used = usage[mangled]
                numbers = kernel.counts()
                numbers["registers"] = (used["REG"] + 7) // 8 * 8
                numbers["stack"] = used["STACK"] + used["LOCAL"]
                blocks = 8 if "wide_" in name else 4  # of a warp in a tile
                numbers["blocks"] = [(count + blocks - 1) // blocks for count, _ in kernel.tile_loops()]
                numbers["rolled"] = sum(rolled for _, rolled in kernel.tile_loops())
                key = short_name(name)
                if "double" in key[1].split(","):
                    continue
                found[key] = worse(found[key], numbers) if key in found else numbers
    return found, architectures


def worse(a, b):
    """Of two kernels that have one name: the larger of what is bounded above, the smaller of the rest."""
    one = {key: (max if more else min)(a[key], b[key]) for key, more in NUMBERS}
    return {**one, "blocks": max(a["blocks"], b["blocks"]), "rolled": max(a["rolled"], b["rolled"])}


def block_text(numbers):
    rolled = f"+{numbers['rolled']}" if numbers["rolled"] else ""
    return "/".join(map(str, numbers["blocks"])) + rolled if numbers["blocks"] else "-"


def written(found, release, architecture):
    groups = {}
    for (kernel, instance), numbers in found.items():
        line = "".join(f"{numbers[key]:>{len(key) + 1}}" for key, _ in NUMBERS) + f"{block_text(numbers):>14}"
        groups.setdefault((kernel, line), []).append(instance)
    lines = [f"{line}  {kernel} {' '.join(sorted(instances))}".rstrip() for (kernel, line), instances
             in sorted(groups.items(), key=lambda item: (item[0][0], sorted(item[1])))]
    columns = "".join(f" {key}" for key, _ in NUMBERS) + f"{'block':>14}"
    return HEADER.format(release=release, architecture=architecture) + f"#{columns[1:]}\n" + "\n".join(lines) + "\n"


def read_table(text):
    table = {}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        words = line.split()
        numbers = {key: int(word) for (key, _), word in zip(NUMBERS, words)}
        blocks, _, rolled = words[len(NUMBERS)].partition("+")
        numbers["blocks"] = [int(one) for one in blocks.split("/")] if blocks != "-" else []
        numbers["rolled"] = int(rolled or 0)
        rest = words[len(NUMBERS) + 1:]
        # Names come first; an instantiation begins with a type or a number, and a kernel without any has an empty one.
        names = [word for word in rest if word.split(",")[0] not in TYPES and not word.split(",")[0].isdigit()]
        for instance in rest[len(names):] or [""]:
            table[" ".join(names), instance] = numbers
    return table


def compare(found, table):
    problems = []
    for key, numbers in sorted(found.items()):
        name = " ".join(key).strip()
        budget = table.get(key)
        if budget is None:
            problems.append(f"{name}: must have a line in the table")
            continue
        for what, more in NUMBERS:
            if numbers[what] > budget[what] if more else numbers[what] < budget[what]:
                problems.append(f"{name}: {what} must be at {'most' if more else 'least'} {budget[what]}, "
                                f"got {numbers[what]}")
        over = [a for a, b in zip(numbers["blocks"], budget["blocks"]) if a > b]
        if over or len(numbers["blocks"]) != len(budget["blocks"]) or numbers["rolled"] > budget["rolled"]:
            problems.append(f"{name}: instructions of a block must be at most {block_text(budget)}, "
                            f"got {block_text(numbers)}")
    return problems + [f"{' '.join(key).strip()}: is in the table, but no object has it"
                       for key in sorted(table.keys() - found.keys())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", nargs="+", type=pathlib.Path)
    parser.add_argument("--nvcc", default=shutil.which("nvcc"), help="whose release the table names")
    parser.add_argument("--update", action="store_true", help="write the table anew")
    options = parser.parse_args()
    tools = find_tools(options.nvcc)
    release = re.search(r"release (\d+\.\d+)", run([options.nvcc, "--version"])).group(1)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        parts = list(pool.map(lambda source: read_object(tools, source), options.objects))
    found = {}
    for part, _ in parts:
        for key, numbers in part.items():
            found[key] = worse(found[key], numbers) if key in found else numbers
    architecture = ",".join(sorted(set().union(*(architectures for _, architectures in parts))))
    text = written(found, release, architecture)
    if options.update:
        TABLE.write_text(text, encoding="utf-8")
        print(f"{TABLE.name}: {len(found)} kernels")
        return 0
    kept = TABLE.read_text(encoding="utf-8")
    if kept.splitlines()[0] != text.splitlines()[0]:
        skip(f"{TABLE.name} has the numbers of another compiler or card ({kept.splitlines()[0][2:].split(':')[0]}), "
             f"here nvcc {release} compiles for {architecture}")
    problems = compare(found, read_table(kept))
    if problems:
        print("\n".join(problems))
        print(f"{len(problems)} numbers are not within the table; look at them, and write it anew with --update if that "
              "is how it shall be")
        return 1
    print(f"{len(found)} kernels are within the table")
    return 0


if __name__ == "__main__":
    sys.exit(main())
