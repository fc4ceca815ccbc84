"""All-attention networks in plain PyTorch: the equations of docs/guide/all-attention.md written with whole score matrices,
as one would write them first. Parameters have the names and shapes of Engram's checkpoints."""

import math

import torch
from torch import nn
from torch.nn import functional


def band(rectangle, span):
    """[.., M, S + M] -> [.., M, S]: row m begins at column m."""
    *lead, rows, columns = rectangle.shape
    flat = functional.pad(rectangle.reshape(*lead, rows * columns), (0, rows))
    return flat.reshape(*lead, rows, columns + 1)[..., :span]


def rectangle(banded, columns):
    """[.., M, S] -> [.., M, columns], the inverse of band, zeros elsewhere; columns >= S + M."""
    *lead, rows, span = banded.shape
    flat = functional.pad(banded, (0, columns + 1 - span)).reshape(*lead, rows * (columns + 1))
    return flat[..., : rows * columns].reshape(*lead, rows, columns)


class SelfAttention(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.known_window = None
        width, heads, slots = model["width"], model["heads"], model["slots"]
        depth = width // heads
        bound = 1 / math.sqrt(width)
        for name in ("query", "key", "value", "output"):
            self.register_parameter(name, nn.Parameter(torch.empty(width, width).uniform_(-bound, bound)))
        if model["span"] == "adaptive":
            self.span = nn.Parameter(torch.full([heads], float(model["span_init"])))
        if model["memory_mode"] == "all":
            self.persistent_keys = nn.Parameter(torch.randn(heads, slots, depth) / math.sqrt(depth))
            self.persistent_values = nn.Parameter(torch.randn(heads, slots, depth) / math.sqrt(slots))

    def window(self):
        """Positions that the layer computes: the longest head's, in steps of 64. Reading a span waits for a card, so
        timings set known_window, which stays true while the spans do."""
        if self.known_window is not None:
            return self.known_window
        longest = self.model["max_span"]
        if self.model["span"] != "adaptive":
            return longest
        seen = min(longest, math.ceil(float(self.span.detach().max()) * longest) + self.model["ramp"] + 1)
        return longest - (longest - seen) // 64 * 64

    def by_head(self, x):
        batch, length, width = x.shape
        heads = self.model["heads"]
        return x.reshape(batch, length, heads, width // heads).transpose(1, 2)

    def keys_and_values(self, x, cache, span):
        """Of S + M positions, [B, H, S + M, D] each. cache: states before the block, [B, C, d], or the keys and values of S
        positions before it."""
        if isinstance(cache, tuple):
            new = (self.by_head(functional.linear(x, weight)) for weight in (self.key, self.value))
            return tuple(torch.cat([past, here], 2) for past, here in zip(cache, new))
        missing = span - cache.shape[1]
        past = functional.pad(cache, (0, 0, missing, 0)) if missing > 0 else cache[:, -missing:]
        states = torch.cat([past, x], 1)
        return tuple(self.by_head(functional.linear(states, weight)) for weight in (self.key, self.value))

    def forward(self, x, key, value, position_keys):
        """x: [B, M, d]; key and value: keys_and_values(); position_keys: [S, D]. Returns [B, M, d]."""
        batch, block, width = x.shape
        span = self.window()
        query = self.by_head(functional.linear(x, self.query))
        distances = position_keys[:span].flip(0)  # oldest first
        scores = band(query @ key.transpose(-1, -2), span) + query @ distances.T  # [B, H, M, S]
        scores = scores / math.sqrt(query.shape[-1])
        persistent = self.model["memory_mode"] == "all"
        if persistent:
            scores = torch.cat([scores, query @ self.persistent_keys.transpose(-1, -2)], -1)
        weights = torch.softmax(scores, -1)
        if self.model["span"] == "adaptive":
            weights = weights * self.mask(span, weights.shape[-1])
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-8)
        weights = functional.dropout(weights, self.model["dropout"], self.training)
        out = rectangle(weights[..., :span], span + block) @ value
        if persistent:
            out = out + weights[..., span:] @ self.persistent_values * math.sqrt(self.model["slots"])
        return functional.linear(out.transpose(1, 2).reshape(batch, block, width), self.output)

    def mask(self, span, columns):
        """[H, 1, columns]: the soft edge of the span, 1 for persistent slots."""
        ramp = self.model["ramp"]
        distance = torch.arange(span, 0, -1, dtype=torch.float32, device=self.span.device)
        reach = self.span[:, None, None] * self.model["max_span"]
        soft = ((ramp + reach - (distance - 1 + self.model["mask_offset"])) / ramp).clamp(0, 1)
        return functional.pad(soft, (0, columns - span), value=1.0)


class Layer(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.dropout = model["dropout"]
        self.attention = SelfAttention(model)
        self.attention_norm = Norm(model["width"])
        self.feed_forward = None
        if model["memory_mode"] == "transformer":
            self.feed_forward = nn.ModuleDict({"inner": nn.Linear(model["width"], model["inner"]),
                                               "outer": nn.Linear(model["inner"], model["width"])})
            self.feed_forward_norm = Norm(model["width"])

    def forward(self, x, key, value, position_keys):
        x = self.attention_norm(x + self.attention(x, key, value, position_keys))
        if self.feed_forward is None:
            return x
        inner = functional.dropout(torch.relu(self.feed_forward["inner"](x)), self.dropout, self.training)
        return self.feed_forward_norm(x + self.feed_forward["outer"](inner))


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return functional.layer_norm(x, self.gain.shape, self.gain, self.bias, 1e-5)


class AllAttention(nn.Module):
    """Characters in, logits out. `caches` holds the hidden states before the block, one [B, C, d] per layer."""

    def __init__(self, model):
        super().__init__()
        if model["pad"] != "attend_zero":
            raise ValueError(f"the peer knows only pad = attend_zero, got {model['pad']}")
        self.model = model
        self.longest_past = model["max_span"]
        width = model["width"]
        self.embedding = nn.Embedding(model["vocabulary"], width)
        self.position_keys = nn.Parameter(torch.randn(model["max_span"], width // model["heads"]))
        self.layers = nn.ModuleList(Layer(model) for _ in range(model["layers"]))
        self.output = nn.Linear(width, model["vocabulary"])

    def empty_caches(self, batch):
        return [torch.zeros(batch, 0, self.model["width"], device=self.position_keys.device) for _ in self.layers]

    def empty_key_caches(self, batch):
        """For generation: nothing is projected twice. The past is full of zeros."""
        heads, device = self.model["heads"], self.position_keys.device
        empty = [torch.zeros(batch, heads, layer.attention.window(), self.model["width"] // heads, device=device)
                 for layer in self.layers]
        return [(keys, keys.clone()) for keys in empty]

    def forward(self, tokens, caches):
        """tokens: [B, M]; caches: empty_caches() or empty_key_caches() at first. Returns logits [B, M, V] and the caches after
        the block."""
        x = self.embedding(tokens)
        x = functional.dropout(x, self.model["embedding_dropout"], self.training)
        after = []
        for layer, cache in zip(self.layers, caches):
            span = layer.attention.window()
            key, value = layer.attention.keys_and_values(x, cache, span)
            if isinstance(cache, tuple):
                after.append((key[:, :, -span:], value[:, :, -span:]))
            else:
                kept = min(self.model["max_span"], span + 64)
                after.append(torch.cat([cache, x.detach()], 1)[:, -kept:])
            x = layer(x, key, value, self.position_keys)
        x = functional.dropout(x, self.model["embedding_dropout"], self.training)
        return self.output(x), after

    def span_loss(self, weight):
        if weight == 0 or self.model["span"] != "adaptive":
            return 0.0
        return weight * self.model["max_span"] * sum(layer.attention.span.mean() for layer in self.layers)


class Adagrad:
    """Adagrad with the step of each tensor shrunk where its gradient's norm is above the clip; spans stay in [0, 1]."""

    def __init__(self, model, rate, options):
        self.parameters = list(model.parameters())
        self.spans = [layer.attention.span for layer in model.layers if model.model["span"] == "adaptive"]
        self.sums = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.rate, self.clip = rate, options["clip"]

    @torch.no_grad()
    def step(self):
        for parameter, total in zip(self.parameters, self.sums):
            gradient = parameter.grad
            total.addcmul_(gradient, gradient)
            update = gradient / total.sqrt().add_(1e-10)
            if self.clip > 0:  # as a tensor: a number would wait for a card
                update *= (self.clip / (gradient.norm() + 1e-10)).clamp(max=1.0)
            parameter.add_(update, alpha=-self.rate)
            parameter.grad = None
        for span in self.spans:
            span.clamp_(0, 1)
