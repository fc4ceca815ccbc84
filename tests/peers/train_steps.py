"""Times training steps of a config's model in PyTorch, on the tokens and with the spans that `engram bench` uses; with
--evaluate blocks with frozen weights, as a plain model evaluates: it projects all of its memory anew; with --generate
blocks of --length tokens through caches of keys and values. Prints one JSON object."""

import argparse
import json
import pathlib
import resource
import statistics
import time

import torch
from torch.nn import functional

from engram_files import bench_tokens, read_config
from families import family_of

WARM_UP_STEPS = 2


def set_spans(model, options, positions):
    """positions: one number or one per head, as in `engram bench --spans`."""
    longest, ramp = options["max_span"], options["ramp"]
    zeta = torch.tensor([1.0 if seen == longest else (seen - ramp) / longest for seen in positions])
    for layer in model.layers:
        layer.attention.span.data[:] = zeta
        layer.attention.known_window = layer.attention.window()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--batch", type=int, default=0, help="rows of a step [the config's training.batch]")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"], help="bf16: torch.autocast")
    parser.add_argument("--spans", default="", help="positions the heads see: 2048,32,32,32 [the longest]")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--evaluate", action="store_true", help="forward passes only, without dropout")
    parser.add_argument("--generate", action="store_true", help="forward passes through caches of keys and values")
    parser.add_argument("--length", type=int, default=0, help="tokens of a block [the config's training.block]")
    parser.add_argument("--memory", type=int, default=0, help="positions of a memory [the config's model.memory]")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    device = torch.device(arguments.device)
    config = read_config(arguments.config)
    family = family_of(config)
    if arguments.memory:
        config["model"]["memory"] = arguments.memory
    options, training = config["model"], config["training"]
    batch, block = arguments.batch or training["batch"], arguments.length or training["block"]
    vocabulary = options["vocabulary"]
    model = family.model(options)
    if options.get("span") == "adaptive":
        spans = [int(part) for part in arguments.spans.split(",")] if arguments.spans else [options["max_span"]]
        set_spans(model, options, spans)
    model.to(device)
    forward = torch.compile(model) if arguments.compile else model
    optimizer = family.optimizer(model, 0.0, config["optimizer"])  # rate 0: spans and cost stay what they are
    inputs, targets = (bench_tokens(batch, block, vocabulary, which).to(device) for which in (0, 1))
    rounded = torch.autocast(device.type, dtype=torch.bfloat16, enabled=arguments.dtype == "bf16")

    def train(caches):
        with rounded:
            logits, caches = forward(inputs, caches)
        loss = functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        (loss + (model.span_loss(training["span_loss"]) if training["span_loss"] else 0)).backward()
        optimizer.step()
        return float(loss.detach()), caches  # waits for a card

    def evaluate(caches):
        with torch.no_grad(), rounded:
            logits, caches = forward(inputs, caches)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return None, caches

    frozen = arguments.evaluate or arguments.generate
    if frozen:
        model.eval()
    caches = model.empty_key_caches(batch) if arguments.generate else model.empty_caches(batch)
    with torch.no_grad(), rounded:
        for _ in range(-(-model.longest_past // block)):
            _, caches = model(inputs, caches)
    seconds = []
    model.train(not frozen)
    for step in range(WARM_UP_STEPS + arguments.steps):
        start = time.perf_counter()
        loss, caches = evaluate(caches) if frozen else train(caches)
        if step >= WARM_UP_STEPS:
            seconds.append(time.perf_counter() - start)
    print(json.dumps({
        "name": pathlib.Path(arguments.config).stem, "torch": torch.__version__, "threads": torch.get_num_threads(),
        "seconds": sorted(seconds), "median_seconds": statistics.median(seconds), "loss": loss,
        "tokens_per_second": batch * block / statistics.median(seconds),
        "resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "device_bytes": torch.cuda.max_memory_reserved() if device.type == "cuda" else 0,
    }))


if __name__ == "__main__":
    main()
