"""Evaluates a run of Engram in PyTorch as `engram evaluate` does without --exact: streams side by side, block by block.
Prints the mean loss in nats, so that the two programs can be compared."""

import argparse

import torch
from torch.nn import functional

from engram_files import Checkpoint, read_tokens
from families import family_of, load


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--data", required=True)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--streams", type=int, default=0, help="[as many as engram evaluate has]")
    parser.add_argument("--blocks", type=int, default=0, help="at most so many [all]")
    arguments = parser.parse_args()
    checkpoint = Checkpoint(arguments.run)
    family = family_of(checkpoint.config)
    model = family.model(checkpoint.config["model"])
    load(model, checkpoint.tensors)
    model.eval()
    tokens = read_tokens(arguments.data, arguments.split)
    rows = arguments.streams or family.streams
    length = tokens.numel() // rows
    streams = tokens[: length * rows].reshape(rows, length)
    block = checkpoint.config["training"].get("block", 64)
    total, count = 0.0, 0
    caches = model.empty_caches(rows)
    with torch.no_grad():
        for number, begin in enumerate(range(0, length - (block if family.whole_blocks else 1), block)):
            if arguments.blocks and number == arguments.blocks:
                break
            targets = streams[:, begin + 1 : begin + block + 1]
            logits, caches = model(streams[:, begin : begin + targets.shape[1]], caches)
            total += float(functional.cross_entropy(logits.flatten(0, 1).double(), targets.flatten(), reduction="sum"))
            count += targets.numel()
    print(f"nll {total / count:.6f} nats over {count} tokens")


if __name__ == "__main__":
    main()
