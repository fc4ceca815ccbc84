"""A model in the layout of the released program of adaptive spans and persistent memory, written from the equations of
docs/mathematics/all-attention.md: only the names and shapes of tensors are that program's."""

import math

import torch
from torch import nn
from torch.nn import functional

from all_attention import band, rectangle
from released_parts import CUTOFFS, STREAMS, VOCABULARY, by_head, cluster_log_probabilities


class Holder(nn.Module):
    """A module of modules and parameters by their names."""

    def __init__(self, **members):
        super().__init__()
        for name, member in members.items():
            setattr(self, name, member)


def words_in_clusters(width):
    ends = [0] + CUTOFFS + [VOCABULARY]
    sizes = [b - a for a, b in zip(ends, ends[1:])]
    widths = [width // 4 ** number for number in range(len(sizes))]
    tables = [nn.Embedding(size, part) for size, part in zip(sizes, widths)]
    projections = nn.ParameterList(nn.Parameter(torch.empty(width, part)) for part in widths)
    outputs = [nn.Linear(part, size) for size, part in zip(sizes, widths)]
    for output, table in zip(outputs, tables):
        output.weight = table.weight
    return (Holder(emb_layers=nn.ModuleList(tables), emb_projs=projections),
            Holder(cluster_proj=nn.Linear(width, len(CUTOFFS)), out_layers=nn.ModuleList(outputs),
                   out_projs=nn.ParameterList(projections)))


class Spans(nn.Module):
    """Adaptive spans of some heads; with slots, which hold the spans too."""

    def __init__(self, width, heads, span, ramp, slots):
        super().__init__()
        mask = Holder(current_val=nn.Parameter(torch.empty(heads, 1, 1)))
        mask.register_buffer("mask_template", torch.linspace(1 - span, 0, steps=span))
        self.adaptive_span = Holder(_mask=mask)
        self.heads, self.span, self.ramp, self.slots, self.epsilon = heads, span, ramp, slots, 1e-8
        if slots > 0:
            depth = width // heads
            self.persistent_memory = Holder(key=nn.Parameter(torch.empty(heads, depth, slots)),
                                            val=nn.Parameter(torch.empty(heads, slots, depth)),
                                            adaptive_span=self.adaptive_span)

    def forward(self, query, key, value, positions):
        depth, block = query.shape[-1], query.shape[-2]
        scores = band(query @ key.transpose(-1, -2), self.span) + query @ positions[0]
        if self.slots > 0:
            scores = torch.cat([scores, query @ (self.persistent_memory.key * math.sqrt(depth))], -1)
        weights = torch.softmax(scores / math.sqrt(depth), -1)
        mask = self.adaptive_span._mask
        soft = ((mask.mask_template + mask.current_val * self.span) / self.ramp + 1).clamp(0, 1)
        weights = weights * functional.pad(soft, (0, self.slots), value=1.0)
        weights = weights / (weights.sum(-1, keepdim=True) + self.epsilon)
        out = rectangle(weights[..., :self.span], self.span + block) @ value
        if self.slots > 0:
            out = out + weights[..., self.span:] @ (self.persistent_memory.val * math.sqrt(self.slots))
        return out


class SpanLayer(nn.Module):
    def __init__(self, width, heads, inner, **spans):
        super().__init__()
        linear = {f"proj_{name}": nn.Linear(width, width, bias=False) for name in ("query", "out", "val", "key")}
        self.attn = Holder(attn=Spans(width, heads, **spans), **linear)
        self.norm1 = nn.LayerNorm(width)
        self.ff = None
        if spans["slots"] == 0:
            self.ff = Holder(fc1=nn.Linear(width, inner), fc2=nn.Linear(inner, width))
            self.norm2 = nn.LayerNorm(width)

    def forward(self, x, cache, positions):
        states, heads = torch.cat([cache, x], 1), self.attn.attn.heads
        seen = self.attn.attn(by_head(self.attn.proj_query(x), heads), by_head(self.attn.proj_key(states), heads),
                              by_head(self.attn.proj_val(states), heads), positions)
        x = self.norm1(x + self.attn.proj_out(seen.transpose(1, 2).flatten(2)))
        if self.ff is None:
            return x
        return self.norm2(x + self.ff.fc2(torch.relu(self.ff.fc1(x))))


class SpanModel(nn.Module):
    def __init__(self, clusters, width, heads, span, layers=2, **sizes):
        super().__init__()
        if clusters:
            self.in_emb, self.out_emb = words_in_clusters(width)
        else:
            self.in_emb, self.out_emb = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY)
        self.key_pe = nn.Parameter(torch.empty(1, width // heads, span))
        self.layers = nn.ModuleList(SpanLayer(width, heads, span=span, **sizes) for _ in range(layers))
        self.clusters, self.width, self.span = clusters, width, span

    def start(self):
        return [self.key_pe.new_zeros(STREAMS, self.span, self.width) for _ in self.layers]

    def forward(self, tokens, caches):
        x = self.vectors(tokens)
        after = []
        for layer, cache in zip(self.layers, caches):
            after.append(torch.cat([cache, x], 1)[:, -self.span:])
            x = layer(x, cache, self.key_pe)
        if not self.clusters:
            return torch.log_softmax(self.out_emb(x), -1), after
        out = self.out_emb
        return cluster_log_probabilities(x, [layer.weight for layer in out.out_layers],
                                         [layer.bias for layer in out.out_layers], list(out.out_projs),
                                         out.cluster_proj.weight, out.cluster_proj.bias), after

    def vectors(self, tokens):
        if not self.clusters:
            return self.in_emb(tokens)
        rows = [functional.linear(table.weight, projection)
                for table, projection in zip(self.in_emb.emb_layers, self.in_emb.emb_projs)]
        return math.sqrt(self.width) * functional.embedding(tokens, torch.cat(rows))

    def exact(self):
        for layer in self.layers:
            layer.attn.attn.epsilon = 0
        return self.double()
