"""What TensorBoard reads in the event file of a run, against its metrics.jsonl.

    python tests/peers/event_files.py RUN EVENT_FOLDER

Every number must be the log's, rounded to f32, at its step and time, and nothing may be missing or more.
"""

import datetime
import json
import pathlib
import sys

import numpy
from tensorboard.backend.event_processing import event_accumulator

TRAIN = {
    "nll": "loss/train", "bpc": "bpc/train", "bits": "bits/train", "ppl": "ppl/train", "ppl_bpe": "ppl_bpe/train",
    "learning_rate": "rate", "gradient_norm": "gradient_norm", "tensors_above_clip": "clipped",
    "cache_shortfalls": "cache_shortfalls", "tokens_per_second": "tokens_per_second/train", "span_mean": "span/mean",
    "span_longest": "span/longest",
}
VALID = {
    "nll": "loss/valid", "bpc": "bpc/valid", "bits": "bits/valid", "ppl": "ppl/valid", "ppl_bpe": "ppl_bpe/valid",
    "ppl_no_eol": "ppl_no_eol/valid", "tokens_per_second": "tokens_per_second/valid",
}


def lines_that_count(path):
    """By event and step, the last line: a resumed run repeats what it took back."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        report = json.loads(line)
        if report["event"] == "resume":
            found = {key: kept for key, kept in found.items() if key[1] <= report["step"]}
        found[report["event"], report["step"]] = report
    return found


def expected_points(lines):
    points, texts = {}, {}
    for (event, step), report in lines.items():
        time = datetime.datetime.fromisoformat(report["time"].replace("Z", "+00:00")).timestamp()
        numbers = {}
        for name, tag in {"train": TRAIN, "valid_short": VALID}.get(event, {}).items():
            if name in report:
                numbers[tag] = report[name]
        if event == "train":
            for layer, heads in enumerate(report.get("spans", [])):
                numbers[f"span/layer_{layer}"] = sum(heads) / len(heads)
        if event == "valid_short":
            for i, layer in enumerate(report.get("memory_layers", [])):
                for what in ("usage", "top_usage", "kl"):
                    numbers[f"memory/layer_{layer}/{what}"] = report[f"memory_{what}"][i]
        for tag, number in numbers.items():
            points.setdefault(tag, []).append((step, time, float(numpy.float32(number))))
        if event == "sample":
            texts[step] = "    " + (report["prompt"] + report["text"]).replace("\n", "\n    ")
    return {tag: sorted(of_tag) for tag, of_tag in points.items()}, texts


def main():
    run, events = map(pathlib.Path, sys.argv[1:])
    points, texts = expected_points(lines_that_count(run / "metrics.jsonl"))
    read = event_accumulator.EventAccumulator(str(events), size_guidance={event_accumulator.SCALARS: 0,
                                                                          event_accumulator.TENSORS: 0})
    read.Reload()
    found = {tag: sorted((one.step, one.wall_time, one.value) for one in read.Scalars(tag))
             for tag in read.Tags()["scalars"]}
    if found != points:
        for tag in sorted(found.keys() | points.keys()):
            if found.get(tag) != points.get(tag):
                print(f"{tag}: the log has {points.get(tag)}, TensorBoard read {found.get(tag)}", file=sys.stderr)
        sys.exit(1)
    found_texts = {}
    for tag in read.Tags()["tensors"]:
        assert tag == "sample" and read.SummaryMetadata(tag).plugin_data.plugin_name == "text", tag
        for one in read.Tensors(tag):
            found_texts[one.step] = one.tensor_proto.string_val[0].decode("utf-8")
    if found_texts != texts:
        sys.exit(f"samples: the log has {texts}, TensorBoard read {found_texts}")
    print(f"{run}: {sum(map(len, points.values()))} numbers of {len(points)} tags and {len(texts)} samples are the log's")


main()
