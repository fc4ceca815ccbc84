"""Small runs of every kind for the pages that the browser opens. They are made by the program that is checked."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

COMMON = """
[optimizer]
kind = "adam"
clip = 1
[schedule]
rate = 0.01
decay = "none"
steps = 30
[training]
batch = 4
block = 24
report_every = 1
validate_every = 10
validate_blocks = 4
checkpoint_every = 10
gradient_report = true
"""
MODELS = {
    "all-attention": 'layers = 2\nwidth = 16\nheads = 2\nslots = 12\nmax_span = 48\nramp = 8\nspan = "adaptive"\n'
                     "span_init = 0.5",
    "transformer-xl": 'family = "transformer_xl"\nlayers = 2\nwidth = 16\nheads = 2\ninner = 24\nmemory = 24',
    "recurrent": 'family = "recurrent"\nembedding_width = 12\nwidth = 24\nreadout = "key_value_predict"\nwindow = 4',
    "product-key": 'family = "product_key"\nlayers = 2\nwidth = 16\nheads = 2\nposition_rows = 24\n[product_key]\n'
                   "layers = [2]\nsubkeys = 12\nheads = 2\nselected = 4\nquery_width = 8",
}
# Names that would break a page which took them for markup.
HOSTILE = "x\"'><img src=x onerror=alert(1)>&amp;"


def text(length, seed=1):
    draw = random.Random(seed)
    words = "an age ago bee big bread dear edge fire go in of the to was".split()
    parts, size = [], 0
    while size < length:
        parts.append(draw.choice(words) + ("\n" if draw.random() < 0.12 else " "))
        size += len(parts[-1])
    return "".join(parts)


class Runs:
    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)
        (self.folder / "text").write_text(text(40_000))
        self.engram("prepare", "--kind", "char", "--text", "text", "--split", "80,10,10", "--out", "data")
        for name, model in MODELS.items():
            (self.folder / f"{name}.toml").write_text(f"[model]\n{model}\n{COMMON}")

    def engram(self, *arguments, code=0):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != code:
            raise AssertionError(f"engram {' '.join(arguments)}: exit {done.returncode} must be {code}\n{done.stderr}")
        return done

    def train(self, name, config="all-attention", settings=(), code=0):
        self.engram("train", "--config", f"{config}.toml", "--data", "data", "--out", name, "--threads", "1",
                    *(["--set", *settings] if settings else []), code=code)

    def start(self, name, resume=False):
        """A run that takes its time, as a process."""
        return subprocess.Popen(
            [self.program, "train", "--config", "all-attention.toml", "--data", "data", "--out", name, "--threads", "1",
             *(["--resume"] if resume else []), "--set", "schedule.steps=100000"],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def lines(self, name):
        file = self.folder / name / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for(self, name, more):
        begun, there = time.monotonic(), len(self.lines(name))
        while len(self.lines(name)) < there + more:
            if time.monotonic() - begun > 60:
                raise AssertionError(f"'{name}' must write {more} lines within a minute")
            time.sleep(0.05)

    def make_small(self):
        """One run of every family, and what can become of runs."""
        for name in MODELS:
            self.train(name, name)
        self.train("diverged", settings=["schedule.rate=1e9", "optimizer.clip=0"], code=1)
        for resume in (False, True):
            process = self.start("resumed", resume)
            self.wait_for("resumed", 5)
            process.send_signal(signal.SIGINT)
            process.wait()
        self.engram("sweep", "--config", "all-attention.toml", "--data", "data", "--out", "sweep", "--threads", "1",
                    "--vary", "model.slots=4,8", "--test", "--set", "schedule.steps=10")
        self.engram("sweep", "--config", "all-attention.toml", "--data", "data", "--out", "seeds", "--threads", "1",
                    "--vary", "model.slots=4,8", "--seeds", "1,2", "--set", "schedule.steps=10")
        (self.folder / "empty").mkdir()
        (self.folder / "empty" / "config.toml").write_text("")
        shutil.copytree(self.folder / "all-attention", self.folder / HOSTILE)
        with open(self.folder / HOSTILE / "metrics.jsonl", "a") as log:
            log.write(json.dumps({"event": "sample", "step": 30, "prompt": "</script><b>", "text": HOSTILE}) + "\n")

    def make_large(self, runs, lines):
        """Logs alone, as long ones are."""
        for run in range(runs):
            folder = self.folder / f"large-{run}"
            folder.mkdir()
            draw = random.Random(run)
            with open(folder / "metrics.jsonl", "w") as log:
                log.write('{"event":"start","step":0,"steps":%d,"data":"x","parameters":1000}\n' % (10 * lines))
                for step in range(10, 10 * lines + 1, 10):
                    loss = 2 + 6 / math.sqrt(step) + draw.gauss(0, 0.03)
                    log.write('{"event":"train","step":%d,"nll":%.6f,"bpc":%.6f,"seconds":%.3f,"learning_rate":%.3e,'
                              '"tokens_per_second":%.1f,"gradient_norm":%.5f,"tensors_above_clip":0.1,"span_mean":%.2f}\n'
                              % (step, loss, loss / math.log(2), step / 50, 1e-3, 5e4 + draw.gauss(0, 500),
                                 draw.lognormvariate(0, 0.3), 100 + draw.gauss(0, 2)))
                    if step % 10_000 == 0:
                        log.write('{"event":"valid_short","step":%d,"nll":%.6f,"bpc":%.6f,"seconds":%.3f,"best":true}\n'
                                  % (step, loss, loss / math.log(2), step / 50))
        return [f"large-{run}" for run in range(runs)]
