#!/usr/bin/env python3
"""Runs everything that tests of kills make once under valgrind's memcheck: reads of what nobody wrote, memory that is
lost, calls of the system with bad memory. Tiny models, one thread. tests/analyzers.sh valgrind.

    python3 tests/faults/valgrind.py PROGRAM [--only WORDS]

PROGRAM must not have been built for this machine alone: valgrind knows no AVX-512. Exit code 1: something was found."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import setting as settings
from setting import Broken, Setting, file_cases, training_cases

FOUND = 99  # the exit code of a process in which valgrind found something


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", help="cases with these words in their names")
    arguments = parser.parse_args()
    settings.LIMIT = 3600  # fifty times as slow as without
    with tempfile.TemporaryDirectory(prefix="engram-valgrind.") as name:
        folder = Path(name)
        logs = folder / "logs"
        logs.mkdir()
        # Valgrind is the program of the tests: its words go to files, as those of the commands are compared.
        watched = folder / "engram"
        watched.write_text(
            f"#!/bin/sh\nexec valgrind --quiet --error-exitcode={FOUND} --leak-check=full --errors-for-leak-kinds=definite "
            f"--show-leak-kinds=definite --log-file={logs}/%p {Path(arguments.program).resolve()} \"$@\"\n")
        watched.chmod(0o755)
        (folder / "setting").mkdir()
        findings = 0

        def watch(what, work):
            nonlocal findings
            began = time.monotonic()
            broken = None
            try:
                work()
            except Broken as error:
                broken = error
            # One a process, empty where nothing was found.
            said = [path.read_text() for path in sorted(logs.iterdir())]
            for path in logs.iterdir():
                path.unlink()
            lines = [line for text in said for line in text.splitlines()]
            print("\n".join(lines[:120]), end="\n" if lines else "")
            if broken:
                print(f"\n{what}: {broken}")
            findings += bool(broken or lines)
            print(f"{what:<34} {len(said):3} processes {time.monotonic() - began:7.0f} s{'  FOUND' if broken or lines else ''}",
                  flush=True)

        made = {}
        watch("data, a run of every family", lambda: made.update(
            setting=Setting(watched, folder / "setting", {"ENGRAM_PROGRAM": os.fspath(watched)})))
        if not made:
            return 1
        for index, case in enumerate(training_cases() + file_cases()):
            if arguments.only and arguments.only not in case.name:
                continue
            watch(case.name, lambda case=case, index=index: case.prepare(made["setting"], folder / f"case-{index}"))
        print(f"{findings} findings")
        return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
