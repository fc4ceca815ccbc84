"""Types the sessions of a page into gdb, and holds what it says against the page.

    python3 tests/gdb/check.py PAGE --softmax PROGRAM     those of `autograd_tour --trace softmax`, in a small program
    python3 tests/gdb/check.py PAGE --tour PROGRAM        all of them, in autograd_tour of the preset teach

A session is a listing that begins with `$ ... gdb ...`; its lines `(gdb) COMMAND` are typed, and every line below one
must be in what gdb answers to it, in this order. `...` in a line stands for anything. Addresses, numbers of lines and
the folder of the sources do not count. Then printers are shown what is no object. Ends with 77 where gdb is missing.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys

MARK = "@@ command "
PRINTERS = "apps/gdb/engram.py"
# One of everything, of tests/gdb/softmax_program.cpp, and what it is shown as.
OBJECTS = [("none", "no tensor"), ("empty", "f32 [0, 3] on cpu at 0x0, no elements"),
           ("scalar", "f64 [] on cpu at 0x0: -1"),
           ("stored", "bf16 [2, 2] on cpu at 0x0: -1 -0.5 | 0 0.5"), ("ids", "i64 [3] on cpu at 0x0: -1 0 0"),
           ("large", "f32 [5, 20] on cpu at 0x0: -1 -0.5 0 0.5 1 1.5 ... 48 48.5, 1 not finite, -1 to 48.5, "
                     "mean 23.747"),
           ("large.shape_", "[5, 20]"), ("set", "set bf16 [2, 2] on cpu at 0x0: -1 -0.5 | 0 0.5"),
           ("add", "add to bf16 [2, 2] on cpu at 0x0: -1 -0.5 | 0 0.5"), ("unwanted", "not wanted"),
           ("second_card", "cuda:1"), ("one_number", "-1.5"), ("absent", "absent"),
           ("constant", "constant i64 [3] on cpu at 0x0: -1 0 0"),
           ("leaf", "leaf in slot 0, bf16 [2, 2] on cpu at 0x0: -1 -0.5 | 0 0.5\n  no gradient yet"),
           ("trained", "parameter layer.weight in slot 1, f32 [2, 2] on cpu at 0x0: 0.25 0.25 | 0.25 0.25\n"
                       "  gradient f32 [2, 2] on cpu at 0x0: 0 0 | 0 0"),
           ("weight", "layer.weight [2, 2]\n  value f32 [2, 2] on cpu at 0x0: 0.25 0.25 | 0.25 0.25\n"
                      "  gradient f32 [2, 2] on cpu at 0x0: 0 0 | 0 0"),
           ("unplaced", "(without a name) [7]\n  value not placed"), ("tape", "tape of 0 operations, training")]
# What is no object: uninitialised memory, code, nothing.
DAMAGED = ["*(engram::%s *) %s" % (kind, place)
           for kind in ("Shape", "Device", "bf16", "Tensor", "Target", "Variable", "Tape", "Parameter", "Backward",
                        "simulated::Thread")
           for place in ("8", "&main", "($sp - 4096)", "$sp")]


def sessions_of(page):
    """Of every session its command line and a list of (command, lines that it must answer)."""
    sessions = []
    listing = None
    for line in open(page, encoding="utf-8").read().splitlines():
        if line.startswith("```"):
            listing = [] if listing is None else None
        elif listing is not None:
            if not listing and re.match(r"\$ .*\bgdb ", line):
                sessions.append((line[2:], []))
            listing.append(line)
            if not listing[0].startswith("$ ") or "gdb " not in listing[0]:
                continue
            if line.startswith("(gdb) "):
                sessions[-1][1].append((line[len("(gdb) "):], []))
            elif len(listing) > 1 and line.strip() and line.strip() != "...":
                sessions[-1][1][-1][1].append(line)
    return sessions


def plain(line):
    """A line without what differs from build to build."""
    line = re.sub(r"0x[0-9a-f]+", "0x", line)
    line = re.sub(r"[^\s(]*/(?=(apps|autograd|core|cpu|cuda)/)", "", line)
    line = re.sub(r"(\.(cpp|cu|cuh|hpp)):\d+", r"\1:N", line)
    line = re.sub(r"^\$\d+ = ", "= ", line)
    return " ".join(line.split())


def is_answer(expected, line):
    """Whether a line is the expected one, whose `...` stand for anything."""
    pieces = [re.escape(piece) for piece in plain(expected).split("...")]
    return re.fullmatch(".*".join(pieces), plain(line)) is not None


def faults_of(answers, command, lines):
    at = 0
    for expected in lines:
        found = [i for i in range(at, len(answers)) if is_answer(expected, answers[i])]
        if not found:
            return ["(gdb) %s\n  must answer\n    %s\n  got\n    %s" % (command, expected, "\n    ".join(answers[at:]))]
        at = found[0] + 1
    return []


def ask(arguments, commands, settings=()):
    """What gdb says, a list of lines for every command. `arguments`: the program and its own."""
    typed = []
    for setting in settings:
        typed += ["-ex", setting]
    for number, command in enumerate(commands):
        typed += ["-ex", "echo \\n%s%d\\n" % (MARK, number), "-ex", command]
    environment = dict(os.environ, OMP_NUM_THREADS="1", LC_ALL="C")
    done = subprocess.run(["gdb", "-batch", "-nx", "-q", "-x", PRINTERS] + typed + ["--args"] + arguments, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                          env=environment)
    answers = [[] for _ in commands]
    at = None
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            at = int(line[len(MARK):])
        elif at is not None:
            answers[at].append(line)
    return answers


def check_session(line, commands, arguments):
    answers = ask(arguments, [command for command, _ in commands])
    faults = []
    for (command, expected), answered in zip(commands, answers):
        faults += faults_of(answered, command, expected)
        if any("Python Exception" in one or "Traceback" in one for one in answered):
            faults.append("(gdb) %s\n  must not fail in Python, got\n    %s" % (command, "\n    ".join(answered)))
    print("%s: %d commands, %d wrong" % (line, len(commands), len(faults)))
    return faults


def check_objects(program):
    """Every printer, on objects that are all there."""
    commands = [("print " + name, ("$1 = " + shown).splitlines()) for name, shown in OBJECTS]
    answers = ask([program, "--objects"], [command for command, _ in commands], ["break look_at", "run", "up"])
    faults = []
    for (command, expected), answered in zip(commands, answers):
        faults += faults_of(answered, command, expected)
    print("one of everything: %d commands, %d wrong" % (len(commands), len(faults)))
    return faults


def check_damaged(program):
    """Every printer says something of what is no object, before the program runs and in it."""
    commands = ["print " + place for place in DAMAGED if "$sp" not in place]
    answers = ask([program], commands)
    later = ["print " + place for place in DAMAGED]
    answers += ask([program], later, ["break main", "run"])
    faults = []
    for command, answered in zip(commands + later, answers):
        said = [line for line in answered if line.strip()]
        if not said or any(word in line for line in said for word in ("Python Exception", "Traceback", "No symbol")):
            faults.append("(gdb) %s\n  must be answered, got\n    %s" % (command, "\n    ".join(said)))
    print("what is no object: %d commands, %d wrong" % (len(answers), len(faults)))
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page")
    parser.add_argument("--softmax")
    parser.add_argument("--tour")
    given = parser.parse_args()
    if shutil.which("gdb") is None:
        print("skipped: there is no gdb here (Debian: gdb)")
        return 77
    sessions = sessions_of(given.page)
    program = given.tour or given.softmax
    if len(sessions) < 3:
        print("%s must have three sessions at least, got %d" % (given.page, len(sessions)))
        return 2
    if program is None or not os.access(program, os.X_OK):
        print("--softmax or --tour must name a program, got %s" % program)
        return 2
    faults = []
    for line, commands in sessions:
        words = shlex.split(line)
        arguments = words[words.index("--args") + 2:]
        if given.tour or arguments[:2] == ["--trace", "softmax"]:
            faults += check_session(line, commands, [program] + arguments)
    if given.softmax:
        faults += check_objects(program)
    faults += check_damaged(program)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
