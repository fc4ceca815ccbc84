"""Transformer-XL in plain PyTorch: the equations of docs/guide/transformer-xl.md written with whole score matrices and
memories of hidden states, as one would write them first. Parameters have the names and shapes of Engram's checkpoints."""

import math

import torch
from torch import nn
from torch.nn import functional

DEVIATION = 0.02  # of weights at the start
# The variants of the family that the equations below are of.
ONLY = {"positions": "relative", "tie_position_biases": True, "pre_norm": False, "visibility": "all",
        "memory_start": "empty", "clamp": 0, "embedding_width": 0, "cutoffs": [], "tie_tables": True,
        "dropout_over_time": False, "word_dropout": 0.0}


def normal(*shape):
    return nn.Parameter(DEVIATION * torch.randn(*shape))


def sinusoids(distances, width):
    """[K, width] of distances K-1 .. 0: sines, then cosines."""
    frequency = 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(distances - 1, -1, -1, dtype=torch.float64)[:, None] * frequency
    return torch.cat([angles.sin(), angles.cos()], -1).float()


def shift(scores):
    """[.., S, K]: column k of row i is distance K-1-k -> column j is the distance of key j, i + K - S - j. Later keys
    than the query get what is left over, and must be hidden."""
    *lead, rows, columns = scores.shape
    padded = functional.pad(scores, (1, 0)).reshape(*lead, columns + 1, rows)
    return padded[..., 1:, :].reshape(*lead, rows, columns)


class RelativeAttention(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.heads, self.dropout = model["heads"], model["attention_dropout"]
        self.known_distances = None  # the projected table, while weights do not change
        inner = self.heads * (model["depth"] or model["width"] // self.heads)
        for name in ("query", "key", "value", "position"):
            self.register_parameter(name, normal(inner, model["width"]))
        self.output = normal(model["width"], inner)

    def by_head(self, x):
        """[.., n, a] -> [.., H, n, d_h]."""
        return x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def keys_and_values(self, x, memory):
        """Of M + S positions, [B, H, M + S, d_h] each. memory: states before the segment, [B, M, D], or keys and values."""
        if isinstance(memory, tuple):
            new = (self.by_head(functional.linear(x, weight)) for weight in (self.key, self.value))
            return tuple(torch.cat([past, here], 2) for past, here in zip(memory, new))
        states = torch.cat([memory, x], 1)
        return tuple(self.by_head(functional.linear(states, weight)) for weight in (self.key, self.value))

    def forward(self, x, key, value, table, biases):
        """x: [B, S, D]; key and value: keys_and_values(); table: sinusoids of M + S distances. Returns [B, S, D]."""
        query = functional.linear(x, self.query)
        if self.training or self.known_distances is None or self.known_distances.shape[-2] != table.shape[0]:
            self.known_distances = self.by_head(functional.linear(table, self.position))
        distance = self.known_distances
        scores = self.by_head(query + biases["content"]) @ key.transpose(-1, -2)
        scores = scores + shift(self.by_head(query + biases["position"]) @ distance.transpose(-1, -2))
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1 + key.shape[2] - x.shape[1])
        weights = torch.softmax((scores / math.sqrt(key.shape[-1])).masked_fill(future, -math.inf), -1)
        weights = functional.dropout(weights, self.dropout, self.training)
        return functional.linear((weights @ value).transpose(1, 2).flatten(2), self.output)


class Norm(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.gain = nn.Parameter(1 + DEVIATION * torch.randn(model["width"]))
        self.bias = nn.Parameter(torch.zeros(model["width"]))
        self.epsilon = model["norm_epsilon"]

    def forward(self, x):
        return functional.layer_norm(x, self.gain.shape, self.gain, self.bias, self.epsilon)


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = normal(outputs, inputs)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return functional.linear(x, self.weight, self.bias)


class Layer(nn.Module):
    def __init__(self, model):
        super().__init__()
        width, inner = model["width"], model["inner"]
        self.dropout = nn.Dropout(model["dropout"])
        self.attention = RelativeAttention(model)
        self.attention_norm = Norm(model)
        self.feed_forward = nn.ModuleDict({"inner": Linear(width, inner), "outer": Linear(inner, width)})
        self.feed_forward_norm = Norm(model)

    def forward(self, x, key, value, table, biases):
        x = self.attention_norm(x + self.dropout(self.attention(x, key, value, table, biases)))
        inner = self.dropout(torch.relu(self.feed_forward["inner"](x)))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward["outer"](inner)))


class TransformerXl(nn.Module):
    """Characters in, logits out. The memory holds the inputs of every layer before the segment, [B, M, D] each."""

    def __init__(self, model):
        super().__init__()
        for name, known in ONLY.items():
            if model[name] != known:
                raise ValueError(f"the peer knows only {name} = {known}, got {model[name]}")
        self.longest_past = model["memory"]
        self.width = model["width"]
        inner = model["heads"] * (model["depth"] or self.width // model["heads"])
        self.dropout = nn.Dropout(model["dropout"])
        self.embedding = nn.ParameterDict({"table": normal(model["vocabulary"], self.width)})
        self.position_biases = nn.ParameterDict({"content": normal(inner), "position": normal(inner)})
        self.layers = nn.ModuleList(Layer(model) for _ in range(model["layers"]))
        self.output = nn.ParameterDict({"bias": torch.zeros(model["vocabulary"])})

    def empty_caches(self, batch):
        return [self.output["bias"].new_zeros(batch, 0, self.width) for _ in self.layers]

    def empty_key_caches(self, batch):
        """For generation: nothing is projected twice."""
        heads = self.layers[0].attention.heads
        empty = self.output["bias"].new_zeros(batch, heads, 0, self.layers[0].attention.key.shape[0] // heads)
        return [(empty, empty) for _ in self.layers]

    def forward(self, tokens, memories):
        """tokens: [B, S]; memories: empty_caches() or empty_key_caches() at first. Returns logits [B, S, V] and the memories
        after the segment."""
        x = self.dropout(math.sqrt(self.width) * functional.embedding(tokens, self.embedding["table"]))
        first = memories[0][0] if isinstance(memories[0], tuple) else memories[0]
        distances = first.shape[-2] + tokens.shape[1]
        table = self.dropout(sinusoids(distances, self.width).to(x.device))
        after = []
        for layer, memory in zip(self.layers, memories):
            key, value = layer.attention.keys_and_values(x, memory)
            dropped = max(0, distances - self.longest_past)
            if isinstance(memory, tuple):
                after.append((key[:, :, dropped:], value[:, :, dropped:]))
            else:
                after.append(torch.cat([memory, x.detach()], 1)[:, dropped:])
            x = layer(x, key, value, table, self.position_biases)
        return functional.linear(self.dropout(x), self.embedding["table"], self.output["bias"]), after


class ClippedAdam:
    """Adam, with all gradients together scaled to the clip where their norm is above it."""

    def __init__(self, model, rate, options):
        self.parameters = list(model.parameters())
        self.clip = options["clip"]
        if options.get("epsilon_at", "corrected") != "corrected":
            raise ValueError(f"the peer knows only optimizer.epsilon_at = 'corrected', got {options['epsilon_at']!r}")
        self.adam = torch.optim.Adam(self.parameters, lr=rate, betas=(options["beta1"], options["beta2"]),
                                     eps=options["epsilon"])

    def step(self):
        if self.clip > 0:
            nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.adam.step()
        self.adam.zero_grad()
