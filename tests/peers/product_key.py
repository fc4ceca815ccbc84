"""The Transformer of docs/guide/product-key.md and its memory in plain PyTorch, written as one would write them first: topk on
both halves, topk of the k^2 sums, embedding_bag for the values, sparse Adam for their table. Parameters have the names and
shapes of Engram's checkpoints. Started as a program it times training steps of the memory layer alone, and prints one JSON
object."""

import argparse
import json
import math
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

# The variants of the family that the equations below are of.
ONLY = {"pre_norm": False}
ONLY_MEMORY = {"count": 0, "placement": "replace", "keys": "product", "factors": 2, "value_width": 0, "projection": False,
               "shared_values": False, "gate": "none", "query_network": "linear", "query_norm": "batch", "unit_keys": False,
               "value_dtype": "f32", "input_dropout": 0.0, "query_dropout": 0.0, "value_dropout": 0.0}
WARM_UP_STEPS = 2


def check(section, options, known):
    for name, value in known.items():
        if options[name] != value:
            raise ValueError(f"the peer knows only {section}.{name} = {value}, got {options[name]}")


def uniform(fan_in, *shape):
    return nn.Parameter(torch.empty(*shape).uniform_(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in)))


def normal(width, *shape):
    return nn.Parameter(torch.randn(*shape) / math.sqrt(width))


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = uniform(inputs, outputs, inputs)
        self.bias = uniform(inputs, outputs)

    def forward(self, x):
        return functional.linear(x, self.weight, self.bias)


class Norm(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(model["width"]))
        self.bias = nn.Parameter(torch.zeros(model["width"]))
        self.epsilon = model["norm_epsilon"]

    def forward(self, x):
        return functional.layer_norm(x, self.gain.shape, self.gain, self.bias, self.epsilon)


class BatchNorm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_variance", torch.ones(features))

    def forward(self, x):
        return functional.batch_norm(x, self.running_mean, self.running_variance, self.gain, self.bias, self.training,
                                     momentum=0.1, eps=1e-5)


class Memory(nn.Module):
    """x: [T, d] -> [T, d]."""

    def __init__(self, width, options):
        super().__init__()
        self.heads, self.selected, self.subkeys = options["heads"], options["selected"], options["subkeys"]
        queries = self.heads * options["query_width"]
        half = options["query_width"] // 2
        self.keys = uniform(half, self.heads, 2, self.subkeys, half)
        self.query = nn.ModuleDict({"layers": nn.ModuleList([Linear(width, queries)]), "norm": BatchNorm(queries)})
        self.values = nn.ParameterDict({"rows": normal(width, self.subkeys ** 2, width)})

    def forward(self, x):
        query = self.query["norm"](self.query["layers"][0](x)).unflatten(1, (self.heads, 2, -1))
        scores = torch.einsum("thfc,hfnc->thfn", query, self.keys)
        k = min(self.selected, self.subkeys)
        best, subkeys = scores.topk(k, dim=-1)
        sums = (best[:, :, 0, :, None] + best[:, :, 1, None, :]).flatten(2)
        slots = (subkeys[:, :, 0, :, None] * self.subkeys + subkeys[:, :, 1, None, :]).flatten(2)
        found, places = sums.topk(self.selected, dim=-1)
        weights = torch.softmax(found, -1)
        return functional.embedding_bag(slots.gather(2, places).flatten(1), self.values["rows"], mode="sum", sparse=True,
                                        per_sample_weights=weights.flatten(1).to(self.values["rows"].dtype))


class Attention(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.heads, self.dropout = model["heads"], model["attention_dropout"]
        for name in ("query", "key", "value", "output"):
            self.add_module(name, Linear(model["width"], model["width"]))

    def by_head(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        query, key, value = (self.by_head(part(x)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(key.shape[-1])
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, -math.inf), -1)
        weights = functional.dropout(weights, self.dropout, self.training)
        return self.output((weights @ value).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, model, memory):
        super().__init__()
        self.dropout = nn.Dropout(model["dropout"])
        self.activation = {"gelu": functional.gelu, "relu": functional.relu}[model["activation"]]
        self.attention = Attention(model)
        self.attention_norm = Norm(model)
        inner = model["inner"] or 4 * model["width"]
        if memory:
            self.memory = Memory(model["width"], memory)
        else:
            self.feed_forward = nn.ModuleDict({"inner": Linear(model["width"], inner), "outer": Linear(inner, model["width"])})
        self.feed_forward_norm = Norm(model)

    def known(self, x):
        if hasattr(self, "memory"):
            return self.memory(x.flatten(0, 1)).view_as(x)
        return self.dropout(self.feed_forward["outer"](self.activation(self.feed_forward["inner"](x))))

    def forward(self, x):
        x = self.attention_norm(x + self.dropout(self.attention(x)))
        return self.feed_forward_norm(x + self.known(x))


class ProductKeyTransformer(nn.Module):
    """Every block is read from nothing, so there are no caches."""

    longest_past = 0

    def __init__(self, model):
        super().__init__()
        memory = model["product_key"]
        check("model", model, ONLY)
        check("product_key", memory, ONLY_MEMORY)
        width = model["width"]
        self.dropout = nn.Dropout(model["dropout"])
        self.embedding = nn.ParameterDict({"table": normal(width, model["vocabulary"], width)})
        self.positions = normal(width, model["position_rows"], width)
        self.embedding_norm = Norm(model)
        self.layers = nn.ModuleList(Layer(model, memory if layer + 1 in memory["layers"] else None)
                                    for layer in range(model["layers"]))
        self.output = nn.ParameterDict({"bias": uniform(width, model["vocabulary"])})

    def empty_caches(self, batch):
        return []

    def forward(self, tokens, caches):
        """tokens: [B, M]. Returns logits [B, M, V] and the caches as they are."""
        x = functional.embedding(tokens, self.embedding["table"]) + self.positions[: tokens.shape[1]]
        x = self.dropout(self.embedding_norm(x))
        for layer in self.layers:
            x = layer(x)
        return functional.linear(x, self.embedding["table"], self.output["bias"]), caches


class TableAdam:
    """Adam, and sparse Adam, which moves the rows with a gradient alone, for the tables of values."""

    def __init__(self, model, rate, options):
        for name in ("clip", "table_clip"):
            if options[name]:
                raise ValueError(f"the peer knows only optimizer.{name} = 0, got {options[name]}")
        for name, known in (("epsilon_at", "corrected"), ("table_epsilon_at", "uncorrected")):
            if options.get(name, known) != known:
                raise ValueError(f"the peer knows only optimizer.{name} = {known!r}, got {options[name]!r}")
        tables = [value for name, value in model.named_parameters() if name.endswith("values.rows")]
        others = [value for name, value in model.named_parameters() if not name.endswith("values.rows")]
        self.adam = torch.optim.Adam(others, lr=rate, betas=(options["beta1"], options["beta2"]), eps=options["epsilon"])
        self.sparse = torch.optim.SparseAdam(tables, lr=options["table_rate"], eps=options["table_epsilon"],
                                             betas=(options["table_beta1"], options["table_beta2"])) if tables else None

    def step(self):
        for optimizer in filter(None, (self.adam, self.sparse)):
            optimizer.step()
            optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=65536)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--selected", type=int, default=32)
    parser.add_argument("--query-width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    memory = Memory(arguments.width, {"heads": arguments.heads, "selected": arguments.selected,
                                      "query_width": arguments.query_width, "subkeys": math.isqrt(arguments.slots)})
    memory.values["rows"].data.zero_()  # as `engram bench --memory` has it
    optimizer = TableAdam(memory, 1e-4, {"clip": 0, "table_clip": 0, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
                                         "table_rate": 1e-3, "table_beta1": 0.9, "table_beta2": 0.999,
                                         "table_epsilon": 1e-8})
    cotangent = torch.randn(arguments.tokens, arguments.width)
    parts = {"forward": [], "backward": [], "update": []}
    for step in range(WARM_UP_STEPS + arguments.steps):
        x = torch.randn(arguments.tokens, arguments.width, requires_grad=True)
        times = [time.perf_counter()]
        y = memory(x)
        times.append(time.perf_counter())
        y.backward(cotangent)
        times.append(time.perf_counter())
        optimizer.step()
        times.append(time.perf_counter())
        if step >= WARM_UP_STEPS:
            for (name, seconds), begin, end in zip(parts.items(), times, times[1:]):
                seconds.append(end - begin)
    print(json.dumps({
        "torch": torch.__version__, "threads": torch.get_num_threads(), "slots": arguments.slots,
        "milliseconds": 1e3 * statistics.median(map(sum, zip(*parts.values()))),
        **{name: 1e3 * statistics.median(seconds) for name, seconds in parts.items()},
        "resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
