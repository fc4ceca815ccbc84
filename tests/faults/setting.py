"""What tests of kills, failing calls and power loss share: texts, tiny models of every family, and cases: something that
the program makes, how it is gone on with after an interruption, and what it must come to. Times differ from run to run
and are left out of every comparison; nothing else is."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

MODEL = "[model]\nlayers = 2\nwidth = 16\nheads = 2\n"
ALL_ATTENTION = MODEL + "slots = 5\nmax_span = 48\nramp = 8\ndropout = 0.2\n"
TRANSFORMER_XL = MODEL + 'family = "transformer_xl"\ninner = 24\nmemory = 24\nmemory_start = "zeros"\ndropout = 0.1\n'
PRODUCT_KEY = (MODEL + 'family = "product_key"\nposition_rows = 64\n[product_key]\nlayers = [2]\nsubkeys = 12\nheads = 2\n'
               "selected = 3\nquery_width = 8\n")
RECURRENT = '[model]\nfamily = "recurrent"\nembedding_width = 8\nwidth = 24\n'
ADAM = '[optimizer]\nkind = "adam"\nclip = 0.5\n'
TRAINING = ("[schedule]\nrate = 0.01\nsteps = 40\n[training]\nbatch = 8\nblock = 20\nsplit = 4\nvalidate_every = 4\n"
            "validate_blocks = 2\nreport_every = 4\ncheckpoint_every = 5\nseed = 11\n")

# One message, which begins so; lines that belong to it begin with two blanks.
ERROR = re.compile(r"^engram: error: ", re.MULTILINE)
LIMIT = 120  # seconds: who takes longer hangs


class Broken(Exception):
    """A promise that was not kept."""


def words(count, seed):
    draw = random.Random(seed)
    some = "an age ago bee big bread dear edge fire go".split()
    return "".join(draw.choice(some) + ("\n" if draw.random() < 0.125 else " ") for _ in range(count))


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def numbers(metrics):
    """The lines of a run's log that count, without times: those that a continuation superseded are left out."""
    lines = []
    for line in metrics.read_text().splitlines():
        entry = json.loads(line)
        if entry["event"] == "start":  # anew, where nothing was saved
            lines = []
        if entry["event"] == "resume":
            lines = [kept for kept in lines if kept["step"] <= entry["step"]]
        if entry["event"] in ("train", "valid_short", "sample", "gradients", "finetune", "averaging"):
            for name in ("time", "seconds", "tokens_per_second"):
                entry.pop(name, None)
            if entry["event"] == "gradients":  # of the steps since the last one, or since the run went on: it says how many
                del entry["steps"], entry["tensors"]
            lines.append(entry)
    return lines


def without_times(text):
    """Of what is printed, and of tables and pages."""
    text = re.sub(r'"(seconds|tokens_per_second|words_per_second|inference_\w+|time|wall_time)": *[-+.\de]+', "", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", text)
    return re.sub(r"[\d.]+ (tokens|words)/s|[\d.,]+ s\b", "", text)


class Setting:
    """A folder with texts, configurations, prepared data and trained runs. `env` goes to every process."""

    def __init__(self, program, folder, env=None):
        self.program, self.folder = str(Path(program).resolve()), Path(folder)
        self.env = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1", "LC_ALL": "C", **(env or {})}
        for name in list(self.env):
            if name.startswith("ENGRAM_FAULT"):
                del self.env[name]
        (self.folder / "text").write_text(words(3000, 1))
        (self.folder / "other").write_text(words(1500, 2))
        (self.folder / "books").mkdir()
        for i in range(12):
            (self.folder / f"books/{i}.txt").write_text(words(120, 10 + i))
        for name, model in (("all-attention", ALL_ATTENTION), ("transformer-xl", TRANSFORMER_XL),
                            ("product-key", PRODUCT_KEY), ("recurrent", RECURRENT)):
            (self.folder / f"{name}.toml").write_text(model + ADAM + TRAINING)
        (self.folder / "small.study").write_text(
            '[study]\ntitle = "small"\nconfig = "all-attention.toml"\nequal = ["tokens"]\nrates = [0.5, 1]\nseeds = [1, 2]\n'
            'block = 60\ntrial_share = 0.5\n[variants]\nslots = ""\nfew = "model.slots=1"\n[claims]\n"more" = "slots < few"\n')
        self.must("prepare", "--text", "text", "--out", "data")
        self.must("prepare", "--kind", "word", "--text", "text", "--out", "words")
        for name in ("all-attention", "transformer-xl", "product-key", "recurrent"):
            self.must("train", "--config", f"{name}.toml", "--data", "words" if name == "recurrent" else "data", "--out",
                      f"made-{name}", "--steps", "12", "--set", "training.gradient_report=true")
        self.must("export", "made-transformer-xl", "--to", "transfo-xl", "--out", "weights/model.safetensors")

    def start(self, arguments, env=None, launcher=()):
        return subprocess.Popen([*launcher, self.program, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**self.env, **(env or {})}, text=True,
                                errors="replace")

    def run(self, arguments, env=None, launcher=()):
        """Its exit code (negative: the signal that ended it), what it printed, and what it said."""
        process = self.start(arguments, env, launcher)
        try:
            printed, said = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Broken(f"it hangs: {' '.join(map(str, arguments))}") from None
        return process.returncode, printed, said

    def must(self, *arguments, launcher=()):
        code, printed, said = self.run(arguments, launcher=launcher)
        if code != 0:
            raise Broken(f"exit {code} of {' '.join(map(str, arguments))}\n{said}")
        return printed


class Case:
    """`old`: arguments that leave an older result in the folder, {out}. `printed`: what it prints is a result too.
    `goes_on`: what it cannot do it says, and does the rest: a page without a run, a sweep without one that lacks memory."""

    def __init__(self, name, arguments, old=None, printed=False, launcher=(), goes_on=False):
        self.name, self.arguments, self.old, self.printed, self.launcher = name, arguments, old, printed, tuple(launcher)
        self.command = arguments[0]
        self.goes_on = goes_on
        self.reference = self.before = None

    def put(self, arguments, out):
        return [str(word).replace("{out}", str(out)) for word in arguments]

    def fresh(self, setting, out, old):
        """Where it begins: with nothing, or with an older result."""
        shutil.rmtree(out, ignore_errors=True)
        if old and self.template.exists():
            shutil.copytree(self.template, out)
        else:
            out.mkdir(parents=True)
        self.before = self.files(out)

    def make_template(self, setting, folder):
        self.template = folder / "template"
        if self.old is None:
            return
        self.template.mkdir(parents=True)
        setting.must(*self.put(self.old, self.template), launcher=self.launcher)

    def prepare(self, setting, folder):
        """What it comes to when nothing disturbs it."""
        self.make_template(setting, folder)
        out = folder / "undisturbed"
        self.fresh(setting, out, True)
        self.reference = self.finish(setting, out)
        self.files_after = self.files(out)

    def next_arguments(self, out):
        return self.put(self.arguments, out)

    def finish(self, setting, out):
        printed = setting.must(*self.next_arguments(out), launcher=self.launcher)
        return self.result(out, printed)

    def result(self, out, printed):
        found = {name: self.comparable(name, data) for name, data in self.files(out).items()}
        if self.printed:
            found["what is printed"] = digest(without_times(printed.replace(str(out), "")).encode())
        return found

    def comparable(self, name, data):
        if name.endswith(".csv"):  # some columns of tables are speeds
            lines = [line.split(",") for line in data.decode().splitlines()]
            timed = [i for i, title in enumerate(lines[0]) if "_per_second" in title or "seconds" in title]
            return digest(json.dumps([[cell for i, cell in enumerate(line) if i not in timed] for line in lines]).encode())
        return digest(data) if name.endswith((".tokens", ".safetensors", ".table", ".npy", ".model")) else digest(
            without_times(data.decode(errors="replace")).encode())

    def is_whole(self, out):
        """Whether it is done although it was killed, and would refuse to be made over itself."""
        return False

    def files(self, out):
        return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*"))
                if path.is_file() and path.name != "lock"}

    def check_between(self, out):
        """After an interruption: what was there is there, whole, or its successor is."""
        for name, data in self.before.items():
            now = out / name
            if not now.exists() and name in self.files_after:
                raise Broken(f"'{name}' is gone")
        for name, data in self.files(out).items():
            if name.endswith(".partial") or name not in self.files_after:
                continue
            known = [self.comparable(name, one[name]) for one in (self.before, self.files_after) if name in one]
            if self.comparable(name, data) not in known:
                raise Broken(f"'{name}' is neither the older nor the new one")

    def compare(self, result):
        if result == self.reference:
            return
        wrong = sorted(name for name in result.keys() | self.reference.keys()
                       if result.get(name) != self.reference.get(name))
        raise Broken(f"must come to what an undisturbed run comes to, differs in {', '.join(wrong)}")


class Training(Case):
    """A run. After an interruption it goes on from its checkpoint; where there is none it begins anew."""

    def __init__(self, name, config, extra=(), data="data", launcher=(), continued=False):
        arguments = ["train", "--config", config, "--data", data, "--out", "{out}/run", *extra]
        if config is None:
            arguments[1:3] = []
        super().__init__(name, arguments, launcher=launcher)
        self.command = "train --resume" if continued else "train"
        self.continued = continued

    def make_template(self, setting, folder):
        self.template = folder / "template"
        if not self.continued:
            return
        # A run that was killed in its third save.
        self.template.mkdir(parents=True)
        library = setting.env_of_library
        code, _, said = setting.run(self.put(self.arguments, self.template),
                                    env={**library, "ENGRAM_FAULT": "rename:6:KILL"}, launcher=self.launcher)
        if code != -9 or not self.has_checkpoint(self.template):
            raise Broken(f"a run must be killed after its first checkpoint, got exit {code}\n{said}")

    @staticmethod
    def has_checkpoint(out):
        return (out / "run/checkpoint/model.safetensors").exists()

    def next_arguments(self, out):
        return self.put(self.arguments, out) + (["--resume"] if self.has_checkpoint(out) else [])

    def result(self, out, printed):
        run = out / "run"
        found = {name: digest((run / name).read_bytes())
                 for name in ("checkpoint/model.safetensors", "best/model.safetensors", "config.toml")}
        found["metrics.jsonl"] = digest(json.dumps(numbers(run / "metrics.jsonl")).encode())
        return found

    def check_between(self, out):
        """What is saved is whole: going on checks it, by its checksum and by what it comes to."""
        if self.continued and not self.has_checkpoint(out):
            raise Broken("the checkpoint is gone")


class Mapped(Case):
    """A folder that is whole as soon as it has a checkpoint, which comes last. It is then not made again."""

    def is_whole(self, out):
        return (out / "run/checkpoint/model.safetensors").exists()

    def finish(self, setting, out):
        if self.is_whole(out):
            return self.result(out, "")
        return super().finish(setting, out)


class Sweep(Case):
    """Runs of which none is trained twice."""

    def files(self, out):
        return {name: data for name, data in super().files(out).items() if not name.endswith("metrics.jsonl")}

    def check_between(self, out):
        """Its runs are checked when it goes on."""


def training_cases(mpi=None):
    """Every family, optimiser and kind of table, and what else a checkpoint may have."""
    table = lambda *keys: ["--set", *(f"optimizer.table_{key}" for key in keys)]
    cases = [
        Training("all-attention, adam", "all-attention.toml"),
        Training("all-attention, adagrad", "all-attention.toml", ["--set", "optimizer.kind=adagrad"]),
        Training("all-attention, sgd", "all-attention.toml", ["--set", "optimizer.kind=sgd", "optimizer.momentum=0.9",
                                                              "optimizer.nesterov=true"]),
        Training("all-attention, averaged", "all-attention.toml", ["--set", "training.weight_average=true",
                                                                   "schedule.rate=0.05"]),
        Training("all-attention, samples", "all-attention.toml", ["--set", "training.sample_every=10",
                                                                  "training.gradient_report=true"]),
        Training("all-attention, two threads", "all-attention.toml", ["--threads", "2"]),
        Training("all-attention, f64", "all-attention.toml", ["--dtype", "f64"]),
        Training("transformer-xl, adam", "transformer-xl.toml"),
        Training("transformer-xl, one piece", "transformer-xl.toml", ["--split", "1"]),
        Training("transformer-xl, bf16", "transformer-xl.toml", ["--dtype", "bf16"]),
        Training("product-key, lazy", "product-key.toml"),
        Training("product-key, dense", "product-key.toml", table("mode=dense", "epsilon=0")),
        Training("product-key, row_step", "product-key.toml", table("mode=row_step", "last_use=true")),
        Training("product-key, deferred", "product-key.toml", table("mode=deferred", "epsilon=0")),
        Training("product-key, row_adagrad", "product-key.toml", table("kind=row_adagrad")),
        Training("recurrent, lstm", "recurrent.toml", data="words"),
        Training("recurrent, key-value-predict", "recurrent.toml",
                 ["--set", "model.readout=key_value_predict", "model.window=4"], data="words"),
        Training("recurrent, qrnn", "recurrent.toml", ["--set", "model.encoder=qrnn", "model.layers=2"], data="words"),
        Training("fine-tuning (--from)", "all-attention.toml", ["--from", "made-all-attention"]),
        Training("fine-tuning, frozen parts", None, ["--from", "made-transformer-xl", "--freeze", "layers.0.*",
                                                     "--steps", "40"]),
    ]
    if mpi:
        launch = [mpi, "-n", "2"]
        cases += [Training("two ranks, all-attention", "all-attention.toml", launcher=launch),
                  Training("two ranks, product-key", "product-key.toml", launcher=launch)]
    return cases


def file_cases():
    """Commands that leave files, each over an older result and where there is none."""
    return [
        Case("prepare, characters", ["prepare", "--text", "text", "--out", "{out}/data"],
             ["prepare", "--text", "other", "--out", "{out}/data"]),
        Case("prepare, words", ["prepare", "--kind", "word", "--text", "text", "--out", "{out}/data"],
             ["prepare", "--text", "other", "--out", "{out}/data"]),
        Case("prepare, subwords", ["prepare", "--kind", "bpe", "--vocabulary", "280", "--text", "text", "--out", "{out}/data"],
             ["prepare", "--kind", "bpe", "--vocabulary", "276", "--text", "other", "--out", "{out}/data"]),
        Case("prepare, articles", ["prepare", "--kind", "word", "--articles", "books", "--split", "60,20,20", "--out", "{out}/data"],
             ["prepare", "--kind", "word", "--text", "other", "--out", "{out}/data"]),
        Case("import", ["import", "weights/model.safetensors", "--from", "transfo-xl", "--vocab", "data", "--out",
                        "{out}/model.safetensors"],
             ["import", "weights/model.safetensors", "--from", "transfo-xl", "--out", "{out}/model.safetensors"]),
        Case("export, transfo-xl", ["export", "made-transformer-xl", "--to", "transfo-xl", "--out", "{out}/m.safetensors"],
             ["export", "made-transformer-xl", "--to", "transfo-xl", "--best", "--set", "model.memory=10", "--out",
              "{out}/m.safetensors"]),
        Case("export, adaptive-span", ["export", "made-all-attention", "--to", "adaptive-span", "--out", "{out}/m.safetensors"]),
        Mapped("map", ["map", "made-product-key", "--out", "{out}/run"]),
        Case("evaluate --per-token", ["evaluate", "made-all-attention", "--data", "data", "--json", "--per-token",
                                      "{out}/losses.npy"],
             ["evaluate", "made-all-attention", "--data", "data", "--exact", "--per-token", "{out}/losses.npy"], printed=True),
        Case("generate", ["generate", "made-recurrent", "--prompt", "an age", "--length", "12"], printed=True),
        Case("report", ["report", "made-all-attention", "made-product-key", "--length", "10", "--out", "{out}/report.html"],
             ["report", "made-transformer-xl", "--only-logs", "--out", "{out}/report.html"], goes_on=True),
        Case("report --tensorboard", ["report", "made-all-attention", "--tensorboard", "{out}/events"]),
        Case("figure", ["figure", "curves", "made-all-attention", "made-product-key", "--out", "{out}/f.svg", "--csv",
                        "{out}/f.csv"],
             ["figure", "curves", "made-product-key", "--out", "{out}/f.svg", "--csv", "{out}/f.csv"]),
        Case("gradients --csv", ["gradients", "made-all-attention", "--csv", "{out}/g.csv"],
             ["gradients", "made-all-attention", "--csv", "{out}/g.csv"], printed=True),
        Sweep("sweep", ["sweep", "--config", "all-attention.toml", "--data", "data", "--out", "{out}/sweep", "--vary",
                        "model.slots=2,3", "--set", "schedule.steps=10"], goes_on=True),
        Sweep("study", ["study", "small.study", "--data", "data", "--out", "{out}/study", "--budget", "0.25"]),
        Case("spans --csv", ["spans", "made-all-attention", "--csv", "{out}/s.csv"], printed=True),
        Case("attention --csv", ["attention", "made-all-attention", "--text", "an age ago", "--csv", "{out}/a.csv"],
             printed=True),
        Case("memory --csv", ["memory", "made-product-key", "--data", "data", "--csv", "{out}/m.csv"], printed=True),
        Case("lengths", ["lengths", "made-transformer-xl", "--data", "data", "--lengths", "8,16", "--csv", "{out}/l.csv",
                         "--svg", "{out}/l.svg"], printed=True),
    ]
