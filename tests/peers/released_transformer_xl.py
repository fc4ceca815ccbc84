"""A model in the layout of Transformer-XL's own PyTorch program, written from the equations of
docs/mathematics/transformer-xl.md: only names are that program's, of tensors, attributes and classes, which a whole
model that is pickled has in it."""

import math

import torch
from torch import nn
from torch.nn import functional

from released_parts import CUTOFFS, LENGTH, STREAMS, VOCABULARY, by_head, cluster_log_probabilities
from transformer_xl import shift


class PositionalEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.demb = width
        self.register_buffer("inv_freq", 1 / 10000 ** (torch.arange(0.0, width, 2.0) / width))

    def forward(self, distances):
        angles = distances[:, None] * self.inv_freq
        return torch.cat([angles.sin(), angles.cos()], -1)


class RelPartialLearnableMultiHeadAttn(nn.Module):
    def __init__(self, width, heads, depth, pre_norm):
        super().__init__()
        self.n_head, self.d_model, self.d_head, self.dropout, self.pre_lnorm = heads, width, depth, 0.1, pre_norm
        self.qkv_net = nn.Linear(width, 3 * heads * depth, bias=False)
        self.drop, self.dropatt = nn.Dropout(0.1), nn.Dropout(0.0)
        self.o_net = nn.Linear(heads * depth, width, bias=False)
        self.layer_norm = nn.LayerNorm(width)
        self.scale = 1 / depth ** 0.5
        self.r_net = nn.Linear(width, heads * depth, bias=False)

    def forward(self, x, memory, table, content_bias, position_bias, hidden_places):
        states = torch.cat([memory, x], 1)
        parts = self.qkv_net(self.layer_norm(states) if self.pre_lnorm else states).chunk(3, -1)
        query, key, value = (by_head(part, self.n_head) for part in parts)
        query = query[:, :, memory.shape[1]:]
        distance = by_head(self.r_net(table)[None], self.n_head)
        scores = (query + content_bias[:, None]) @ key.transpose(-1, -2)
        scores = scores + shift((query + position_bias[:, None]) @ distance.transpose(-1, -2))
        weights = torch.softmax((scores * self.scale).masked_fill(hidden_places, -math.inf), -1)
        x = x + self.o_net((weights @ value).transpose(1, 2).flatten(2))
        return x if self.pre_lnorm else self.layer_norm(x)


class PositionwiseFF(nn.Module):
    def __init__(self, width, inner, pre_norm):
        super().__init__()
        self.d_model, self.d_inner, self.dropout, self.pre_lnorm = width, inner, 0.1, pre_norm
        self.CoreNet = nn.Sequential(nn.Linear(width, inner), nn.ReLU(inplace=True), nn.Dropout(0.1),
                                     nn.Linear(inner, width), nn.Dropout(0.1))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, x):
        if self.pre_lnorm:
            return x + self.CoreNet(self.layer_norm(x))
        return self.layer_norm(x + self.CoreNet(x))


class RelPartialLearnableDecoderLayer(nn.Module):
    def __init__(self, width, heads, depth, inner, pre_norm):
        super().__init__()
        self.dec_attn = RelPartialLearnableMultiHeadAttn(width, heads, depth, pre_norm)
        self.pos_ff = PositionwiseFF(width, inner, pre_norm)

    def forward(self, x, *seen):
        return self.pos_ff(self.dec_attn(x, *seen))


class AdaptiveEmbedding(nn.Module):
    def __init__(self, width, divisor):
        super().__init__()
        self.n_token, self.d_embed, self.d_proj, self.div_val = VOCABULARY, width, width, divisor
        self.cutoffs, self.emb_scale = CUTOFFS + [VOCABULARY], width ** 0.5
        self.cutoff_ends = [0] + self.cutoffs
        self.emb_layers, self.emb_projs = nn.ModuleList(), nn.ParameterList()
        for number, (begin, end) in enumerate(zip(self.cutoff_ends, self.cutoffs)):
            self.emb_layers.append(nn.Embedding(end - begin, width // divisor ** number))
            self.emb_projs.append(nn.Parameter(torch.empty(width, width // divisor ** number)))

    def forward(self, tokens):
        rows = [functional.linear(table.weight, projection)
                for table, projection in zip(self.emb_layers, self.emb_projs)]
        return self.emb_scale * functional.embedding(tokens, torch.cat(rows))


class ProjectedAdaptiveLogSoftmax(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.n_token, self.d_embed, self.d_proj, self.div_val = VOCABULARY, words.d_embed, words.d_proj, words.div_val
        self.cutoffs, self.cutoff_ends = words.cutoffs, words.cutoff_ends
        self.shortlist_size, self.n_clusters = CUTOFFS[0], len(CUTOFFS)
        self.cluster_weight = nn.Parameter(torch.empty(len(CUTOFFS), words.d_embed))
        self.cluster_bias = nn.Parameter(torch.empty(len(CUTOFFS)))
        self.out_layers, self.out_projs, self.keep_order = nn.ModuleList(), nn.ParameterList(), False
        for number, (table, projection) in enumerate(zip(words.emb_layers, words.emb_projs)):
            layer = nn.Linear(table.embedding_dim, table.num_embeddings)
            layer.weight = table.weight
            self.out_layers.append(layer)
            self.out_projs.append(projection if number > 0 else nn.Parameter(torch.empty_like(projection)))

    def forward(self, hidden):
        return cluster_log_probabilities(hidden, [layer.weight for layer in self.out_layers],
                                         [layer.bias for layer in self.out_layers], list(self.out_projs),
                                         self.cluster_weight, self.cluster_bias)


class MemTransformerLM(nn.Module):
    def __init__(self, width, heads, depth, inner, memory, clamp, same_length, pre_norm, layers=2):
        super().__init__()
        self.n_token, self.d_embed, self.d_model, self.n_head, self.d_head = VOCABULARY, width, width, heads, depth
        self.word_emb = AdaptiveEmbedding(width, 2)
        self.drop = nn.Dropout(0.1)
        self.n_layer, self.tgt_len, self.mem_len, self.ext_len, self.attn_type = layers, LENGTH, memory, 0, 0
        self.max_klen = LENGTH + memory
        self.layers = nn.ModuleList(RelPartialLearnableDecoderLayer(width, heads, depth, inner, pre_norm)
                                    for _ in range(layers))
        self.sample_softmax = -1
        self.crit = ProjectedAdaptiveLogSoftmax(self.word_emb)
        self.same_length, self.clamp_len = same_length, clamp
        self.pos_emb = PositionalEmbedding(width)
        self.r_w_bias = nn.Parameter(torch.empty(heads, depth))
        self.r_r_bias = nn.Parameter(torch.empty(heads, depth))

    def start(self):
        return [self.r_w_bias.new_zeros(STREAMS, 0, self.d_model) for _ in self.layers]

    def forward(self, tokens, memories):
        x = self.word_emb(tokens)
        seen, block = memories[0].shape[1] + tokens.shape[1], tokens.shape[1]
        distances = torch.arange(seen - 1, -1, -1, dtype=x.dtype)
        table = self.pos_emb(distances.clamp(max=self.clamp_len))
        distance = torch.arange(block)[:, None] + (seen - block) - torch.arange(seen)
        hidden_places = distance < 0
        if self.same_length:
            hidden_places = hidden_places | (distance >= self.mem_len)
        after = []
        for layer, memory in zip(self.layers, memories):
            after.append(torch.cat([memory, x], 1)[:, -self.mem_len:])
            x = layer(x, memory, table, self.r_w_bias, self.r_r_bias, hidden_places)
        return self.crit(x), after

    def exact(self):
        exact = self.double()
        exact.pos_emb.inv_freq = 1 / 10000 ** (torch.arange(0, self.d_model, 2, dtype=torch.float64) / self.d_model)
        return exact
