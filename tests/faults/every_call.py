#!/usr/bin/env python3
"""Lets every call fail that a command makes on files and memory, one a run, and says what became of it
(tests/faults.sh). The calls are counted in an undisturbed run under the preloaded library."""

import argparse
import collections
import errno
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from setting import ERROR, Broken, Setting, Training, file_cases, without_times

# What each kind of call may say. `half`: a call does half of its bytes, as the system may; KILL: the process is killed
# before it, KILLHALF after half of its bytes; +: all later calls of the kind fail too.
ERRORS = {
    "write": ["ENOSPC+", "EIO", "EINTR", "half", "KILL", "KILLHALF"],
    "read": ["EIO", "EINTR", "half"],
    "flush": ["EIO", "ENOSPC+", "EINTR", "KILL"],
    "rename": ["EIO", "ENOSPC+", "KILL"],
    "open": ["EMFILE", "EMFILE+", "EIO", "EINTR"],
    "map": ["ENOMEM"],
    "truncate": ["EIO", "EINTR", "KILL"],
    "close": ["EIO", "EINTR"],
    "memory": ["ENOMEM"],
    "folder": ["ENOSPC", "EIO", "KILL"],
    "remove": ["EIO", "KILL"],
    "print": ["ENOSPC", "EIO"],
}
# What is no error at all: the call is made again, or goes on where it was.
HARMLESS = ("EINTR", "half")


def cases():
    """One run of every family from its beginning, one that goes on, and every command that leaves files or prints."""
    short = ["--set", "schedule.steps=12"]
    return [
        Training("all-attention", "all-attention.toml", [*short, "training.sample_every=6", "training.gradient_report=true"]),
        Training("all-attention, gone on with", "all-attention.toml", short, continued=True),
        Training("transformer-xl", "transformer-xl.toml", short),
        Training("product-key", "product-key.toml", [*short, "optimizer.table_mode=deferred", "optimizer.table_epsilon=0"]),
        Training("recurrent", "recurrent.toml", short, data="words"),
        Training("fine-tuning (--from)", "all-attention.toml", ["--from", "made-all-attention", *short]),
    ] + [case for case in file_cases() if case.name != "study"]  # ten thousand faults, and a sweep does nearly the same


class Faults:
    def __init__(self, setting, case, folder):
        self.setting, self.case, self.folder = setting, case, folder
        case.prepare(setting, folder)
        self.old = case.template.exists()
        self.calls = collections.Counter()
        listed = folder / "calls"
        out = folder / "listed"
        case.fresh(setting, out, True)
        code, printed, said = setting.run(case.next_arguments(out), {**setting.env_of_library, "ENGRAM_FAULT_LIST": str(listed)})
        if code != 0:
            raise Broken(f"{case.name}: exit {code} under the library\n{said}")
        case.compare(case.result(out, printed))
        self.words = without_times(said.replace(str(out), "OUT"))
        self.about = collections.defaultdict(list)
        for line in listed.read_text(errors="replace").splitlines():
            kind, name, about = line.split("\t", 2)
            self.calls[kind] += 1
            self.about[kind].append(f"{name} {about.replace(str(out), 'OUT')}")
        self.said = self.survived = self.killed = 0
        self.broken = []

    def plans(self, kinds):
        return [(kind, n, error) for kind in kinds for n in range(1, self.calls[kind] + 1) for error in ERRORS[kind]]

    def one(self, plan, out, messages):
        kind, n, error = plan
        case = self.case
        case.fresh(self.setting, out, self.old)
        arguments = case.next_arguments(out)
        code, printed, said = self.setting.run(arguments, {**self.setting.env_of_library,
                                                           "ENGRAM_FAULT": f"{kind}:{n}:{error}"})
        if code == 0:
            if error.startswith("KILL"):
                raise Broken("nothing was killed")
            outcome = "survived"
            try:
                case.compare(case.result(out, printed))
            except Broken:
                page = "".join(path.read_text(errors="replace") for path in out.rglob("*.html"))
                reason = os.strerror(getattr(errno, error.rstrip("+"), 0))
                silent = reason not in page and without_times(said.replace(str(out), "OUT")) == self.words
                if not case.goes_on or error in HARMLESS or silent:
                    raise
                outcome = "said"
        elif error.startswith("KILL") and code == -9:
            outcome = "killed"
        elif code in (1, 2):
            if error in HARMLESS:
                raise Broken(f"it is no error, got exit {code}: {said[said.find('engram: error'):].strip()}")
            if len(ERROR.findall(said)) != 1:
                raise Broken(f"there must be one message, got: {said.strip()[-400:] or 'nothing'}")
            message = said[ERROR.search(said).start():].strip()
            messages[message.replace(str(out), "OUT")].append(plan)
            outcome = "said"
        else:
            raise Broken(f"exit code {code}: {said.strip()[-400:]}")
        if outcome != "killed" and kind != "remove":
            left = [str(path.relative_to(out)) for path in out.rglob("*.partial")
                    if str(path.relative_to(out)) not in case.before]
            if left:
                raise Broken(f"left behind: {', '.join(left)}")
        if outcome != "survived":
            if code != 0:
                case.check_between(out)
            case.compare(case.finish(self.setting, out))
        return outcome

    def work(self, plans, messages, guard, number):
        out = self.folder / f"fault-{number}"
        while True:
            with guard:
                if not plans:
                    return
                plan = plans.pop()
            try:
                outcome = self.one(plan, out, messages)
            except Exception as error:  # of the test's own too: a worker that ends must not look like one that is done
                kind, n, _ = plan
                with guard:
                    self.broken.append((self.case.name, plan, self.about[kind][n - 1],
                                        str(error) if isinstance(error, Broken) else repr(error)))
                continue
            with guard:
                setattr(self, outcome, getattr(self, outcome) + 1)

    def go(self, kinds, jobs, messages):
        plans = self.plans(kinds)
        plans.reverse()
        guard = threading.Lock()
        workers = [threading.Thread(target=self.work, args=(plans, messages, guard, i)) for i in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for path in self.folder.glob("fault-*"):
            shutil.rmtree(path, ignore_errors=True)


def tell(broken):
    """One line for what is broken alike."""
    alike = collections.defaultdict(list)
    for name, plan, about, error in broken:
        plain = re.sub(r"/\S*/(case-\d+/)?fault-\d+/", "OUT/", error)
        alike[plan[0], plan[2], re.sub(r"'[^']*'", "'..'", plain)].append((name, plan, about, plain))
    for group in alike.values():
        name, (kind, n, error), about, plain = group[0]
        print(f"tests/faults.sh: {len(group)} times, such as {name}, {kind}:{n}:{error} ({about}):\n  {plain[:500]}",
              file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("library", help="libengram_faults.so")
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--kinds", default=",".join(ERRORS), help="kinds of calls, with commas between them")
    parser.add_argument("--memory", default="16384", help="the kind memory: allocations of so many bytes or more [16384]")
    parser.add_argument("--messages", action="store_true", help="print every message once")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    chosen = [case for case in cases() if options.only in case.name]
    if unknown := [kind for kind in kinds if kind not in ERRORS]:
        parser.error(f"--kinds must be of {', '.join(ERRORS)}, got {', '.join(unknown)}")
    if not chosen:
        parser.error(f"--only must be words of a case's name, got '{options.only}' of {'; '.join(case.name for case in cases())}")
    began = time.monotonic()
    broken, messages, rows = [], collections.defaultdict(list), []
    with tempfile.TemporaryDirectory(prefix="engram-faults.") as folder:
        folder = Path(folder)
        setting = Setting(options.program, folder)
        setting.env_of_library = {"LD_PRELOAD": str(Path(options.library).resolve()), "ENGRAM_FAULT_MEMORY": options.memory}
        print(f"{'command':34} {'calls':>6} {'faults':>7} {'said':>6} {'survived':>9} {'killed':>7}  broken", flush=True)
        for i, case in enumerate(chosen):
            faults = Faults(setting, case, folder / f"case-{i}")
            faults.go(kinds, options.jobs, messages)
            row = [sum(faults.calls[kind] for kind in kinds), faults.said + faults.survived + faults.killed + len(faults.broken),
                   faults.said, faults.survived, faults.killed, len(faults.broken)]
            rows.append(row)
            print(f"{case.name:34} {row[0]:6} {row[1]:7} {row[2]:6} {row[3]:9} {row[4]:7}  {row[5] or '-'}", flush=True)
            broken += faults.broken
            tell(faults.broken)
    total = [sum(column) for column in zip(*rows)]
    print(f"{'all':34} {total[0]:6} {total[1]:7} {total[2]:6} {total[3]:9} {total[4]:7}  {total[5] or '-'}"
          f"  in {time.monotonic() - began:.0f} s")
    if options.messages:
        for message, plans in sorted(messages.items()):
            print(f"\n{len(plans)} times, such as {':'.join(map(str, plans[0]))}\n  {message}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
