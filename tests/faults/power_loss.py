#!/usr/bin/env python3
"""Takes the power away from a run after every change that it made on the disk (tests/faults.sh).

The preloaded library writes down in which order the program writes, cuts, flushes, renames and removes files. From every
prefix of that record come the states that a disk may be in when the power goes, as ext4 and XFS allow it:

- Bytes that were written and not flushed are all there, half there, not there, or zeros of the same length.
- Names that were given, taken or made in folders that were not flushed since are there up to any one of them, in their
  order, as a journal has it; or, where several folders have such names, in one of the folders alone.

What was promised when the power went must hold in every state: each checkpoint that a save had returned from is there, or
a newer one, whole; reports up to the step of the newest are in the log; and the run goes on to the bits of the undisturbed
run. Whole files are known by their hashes, and the program goes on from a sample of the states, or from all of them."""

import argparse
import collections
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setting import Broken, Setting, Training, digest

SAVED = ("run/checkpoint/model.safetensors", "run/best/model.safetensors", "run/config.toml")


class File:
    """Contents that are on the disk, and changes that may not be."""

    def __init__(self):
        self.durable, self.pending = b"", []

    def change(self, offset, data):
        self.pending.append((offset, data))

    def flush(self):
        self.durable, self.pending = self.now("kept"), []

    def now(self, way):
        """All that it would hold: what was not flushed is kept, torn at half, lost or zeros."""
        data = bytearray(self.durable)
        if way == "lost":
            return bytes(data)
        for offset, bytes_ in self.pending:
            if bytes_ is None:  # cut to this length
                del data[offset:]
                data.extend(b"\0" * (offset - len(data)))
                continue
            part = bytes_[:len(bytes_) // 2] if way == "torn" else b"\0" * len(bytes_) if way == "zeros" else bytes_
            data.extend(b"\0" * (offset - len(data)))
            data[offset:offset + len(part)] = part
        return bytes(data)


class Disk:
    """What the record's prefix leaves: `names` maps paths that are surely there to files (None: a folder); `waiting` are
    changes of names that may not be on the disk."""

    def __init__(self):
        self.names, self.now, self.files, self.waiting = {"": None}, {"": None}, {}, []

    @staticmethod
    def parent(path):
        return os.path.dirname(path)

    def rename_in(self, names, change):
        kind, path, to, file = change
        if kind == "give":
            names[path] = file
        elif kind == "take":
            names.pop(path, None)
        else:
            names.pop(path, None)
            names[to] = file

    def change_names(self, kind, path, to=None, file=None):
        change = (kind, path, to, file)
        self.rename_in(self.now, change)
        self.waiting.append(change)

    def flush_folder(self, path):
        still = []
        for change in self.waiting:
            if self.parent(change[1]) == path:
                self.rename_in(self.names, change)
            else:
                still.append(change)
        self.waiting = still

    def states(self):
        """Names and ways to lose bytes, of every state that the disk may be in."""
        waiting = [self.waiting[:count] for count in range(len(self.waiting) + 1)]
        folders = {self.parent(change[1]) for change in self.waiting}
        if len(folders) > 1:
            waiting += [[change for change in self.waiting if self.parent(change[1]) == folder] for folder in folders]
        for done in waiting:
            names = dict(self.names)
            for change in done:
                self.rename_in(names, change)
            # A name in a folder that is not there is nowhere.
            whole = {}
            for path in sorted(names):
                if path == "" or (self.parent(path) in whole and whole[self.parent(path)] is None):
                    whole[path] = names[path]
            dirty = any(file is not None and file.pending for file in whole.values())
            for way in ("kept", "torn", "lost", "zeros") if dirty else ("kept",):
                yield {path: None if file is None else file.now(way) for path, file in whole.items() if path != ""}


def read_record(path, root):
    """Its lines as (word, numbers and paths, bytes)."""
    data = path.read_bytes()
    at = 0
    inside = lambda name: os.path.relpath(os.path.join(root.parent, name), root)
    while at < len(data):
        end = data.index(b"\n", at)
        word, rest = data[at:end].decode().split(" ", 1)
        at = end + 1
        if word == "write":
            inode, offset, count = map(int, rest.split())
            yield word, (inode, offset), data[at:at + count]
            at += count
        elif word == "open":
            inode, made, cut, name = rest.split(" ", 3)
            yield word, (int(inode), int(made), int(cut), inside(name)), b""
        elif word in ("flush", "cut"):
            inode, number = map(int, rest.split())
            yield word, (inode, number), b""
        else:
            yield word, tuple(inside(name) for name in rest.split("\t")), b""


def replay(record, unflushed=False):
    """After every change: the change, and the disk. `unflushed`: as if contents of files had never been flushed."""
    disk, open_files = Disk(), {}
    for word, facts, data in record:
        if word == "open":
            inode, made, cut, path = facts
            if path.startswith(".."):
                continue
            path = "" if path == "." else path
            if made:
                disk.change_names("give", path, file=File())
            if path not in disk.now:
                continue
            open_files[inode] = (path, disk.now[path])
            if cut and disk.now[path] is not None:
                disk.now[path].change(0, None)
        elif word in ("write", "cut", "flush"):
            if facts[0] not in open_files:
                continue
            path, file = open_files[facts[0]]
            if word == "write":
                file.change(facts[1], data)
            elif word == "cut":
                file.change(facts[1], None)
            elif file is None:
                disk.flush_folder(path)
            elif not unflushed:
                file.flush()
        elif word == "mkdir":
            disk.change_names("give", facts[0])
        elif word == "unlink":
            disk.change_names("take", facts[0])
        elif word == "rename":
            disk.change_names("rename", facts[0], facts[1], disk.now[facts[0]])
        yield word, facts, disk


class Promise:
    """What had been saved by a moment: for every path the digests of its contents, in their order, and how many of them a
    save had returned from: its folder was flushed after the rename."""

    def __init__(self):
        self.versions, self.returned = collections.defaultdict(list), collections.Counter()
        self.renamed = set()

    def see(self, word, facts, disk):
        if word == "rename" and facts[1] in SAVED:
            self.versions[facts[1]].append(digest(disk.now[facts[1]].now("kept")))
            self.renamed.add(facts[1])
        # The first change after the flush: the save is done, or about to be.
        if word == "flush":
            for path in list(self.renamed):
                if not any(path in change for change in disk.waiting):
                    self.returned[path] = len(self.versions[path])
                    self.renamed.discard(path)

    def check(self, state):
        for path in SAVED:
            sure, known = self.returned[path], self.versions[path]
            if path not in state:
                if sure > 0:
                    raise Broken(f"{path}, saved {sure} times, is gone")
                continue
            now = digest(state[path])
            if now not in known[max(0, sure - 1):]:
                what = "an older one" if now in known else "not whole"
                raise Broken(f"{path} must be the version {sure} or newer, got {what}")


def write_state(state, out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for path, data in sorted(state.items()):
        if data is None:
            (out / path).mkdir()
        else:
            (out / path).write_bytes(data)


def states_of(record_file, out, unflushed=False):
    """All different states, each with how many prefixes it is one of and what was promised at the last of them."""
    promise, found, prefixes, all_states = Promise(), {}, 0, 0
    for word, facts, disk in replay(read_record(record_file, out), unflushed):
        promise.see(word, facts, disk)
        prefixes += 1
        for state in disk.states():
            all_states += 1
            try:
                promise.check(state)
            except Broken as error:
                raise Broken(f"power lost after change {prefixes} ({word} {' '.join(map(str, facts))}): {error}") from None
            key = digest(repr(sorted((path, data and digest(data)) for path, data in state.items())).encode())
            # Hashes cost less than memory for all: a state is kept once.
            found.setdefault(key, (prefixes, dict(state)))
    return found, prefixes, all_states, promise


def cases():
    saves = ["--set", "schedule.steps=15"]
    return [Training("all-attention", "all-attention.toml", saves),
            Training("product-key, tables", "product-key.toml", saves),
            Training("product-key, deferred rows", "product-key.toml",
                     saves + ["optimizer.table_mode=deferred", "optimizer.table_epsilon=0"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("library", help="libengram_faults.so")
    parser.add_argument("--sample", type=int, default=1, help="go on from every so-manieth state [1: from all]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    began = time.monotonic()
    broken, total = [], [0, 0, 0, 0]
    print(f"{'power loss':28} {'prefixes':>9} {'states':>7} {'different':>10} {'gone on from':>13}  broken")
    with tempfile.TemporaryDirectory(prefix="engram-power.") as folder:
        folder = Path(folder)
        setting = Setting(options.program, folder)
        setting.env_of_library = {"LD_PRELOAD": str(Path(options.library).resolve())}
        for i, case in enumerate(cases()):
            here = folder / f"case-{i}"
            case.prepare(setting, here)
            out, record = here / "recorded", here / "record"
            case.fresh(setting, out, False)
            code, _, said = setting.run(case.next_arguments(out), {**setting.env_of_library, "ENGRAM_FAULT_RECORD": str(record)})
            if code != 0:
                raise Broken(f"exit {code} while it was recorded\n{said}")
            case.compare(case.result(out, ""))
            failures = []
            try:
                found, prefixes, states, promise = states_of(record, out)
            except Broken as error:
                broken.append(f"{case.name}: {error}")
                continue
            if len(promise.versions[SAVED[0]]) < 3:
                raise Broken(f"a run must save three checkpoints, got {len(promise.versions[SAVED[0]])}")
            # What looks must be able to see: without its flushes the same run loses checkpoints.
            try:
                states_of(record, out, unflushed=True)
            except Broken:
                pass
            else:
                raise Broken("a run that never flushes its files must lose some of them, and none was missed")
            chosen = list(found.values())[::options.sample]

            def go_on(numbered):
                number, (prefix, state) = numbered
                place = here / f"state-{number % (4 * options.jobs)}-{number}"
                write_state(state, place)
                try:
                    case.compare(case.finish(setting, place))
                except Exception as error:
                    failures.append(f"{case.name}, power lost after change {prefix}: {error}")
                shutil.rmtree(place, ignore_errors=True)

            with ThreadPoolExecutor(options.jobs) as pool:
                list(pool.map(go_on, enumerate(chosen)))
            row = [prefixes, states, len(found), len(chosen)]
            total = [a + b for a, b in zip(total, row)]
            print(f"{case.name:28} {row[0]:9} {row[1]:7} {row[2]:10} {row[3]:13}  {len(failures) or '-'}", flush=True)
            broken += failures
    print(f"{'all':28} {total[0]:9} {total[1]:7} {total[2]:10} {total[3]:13}  {len(broken) or '-'}"
          f"  in {time.monotonic() - began:.0f} s")
    for one in broken[:20]:
        print(f"tests/faults/power_loss.py: {one}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
