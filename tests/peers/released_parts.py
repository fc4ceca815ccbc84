"""What the models of released_spans.py and released_transformer_xl.py share: their sizes, heads, and the adaptive softmax,
whose slots both programs have in the opposite order of the clusters."""

import torch
from torch.nn import functional

STREAMS, LENGTH, VOCABULARY = 2, 5, 30
CUTOFFS = [10, 20]


def by_head(x, heads):
    """[B, n, H e] -> [B, H, n, e]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def cluster_log_probabilities(hidden, tables, biases, projections, head_weight, head_bias):
    """[.., V] of hidden [.., d]: the slot of the first cluster behind the first words is the last one."""
    logits = [functional.linear(functional.linear(hidden, projection.t()), table, bias)
              for table, bias, projection in zip(tables, biases, projections)]
    slots = functional.linear(functional.linear(hidden, projections[0].t()), head_weight, head_bias)
    head = torch.log_softmax(torch.cat([logits[0], slots], -1), -1)
    words = [head[..., :logits[0].shape[-1]]]
    for number, tail in enumerate(logits[1:], 1):
        words.append(head[..., -number, None] + torch.log_softmax(tail, -1))
    return torch.cat(words, -1)
