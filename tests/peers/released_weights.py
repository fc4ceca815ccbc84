"""Writes tests/golden/released/: small files of PyTorch in the layouts of released programs, and what models compute.

    python3.10 -m venv venv && venv/bin/pip install torch==1.12.1 "numpy<2" safetensors
    venv/bin/python tests/peers/released_weights.py
    venv/bin/python tests/peers/released_weights.py --read FOLDER

The second reads FOLDER/NAME.safetensors of the three models, as `engram export` writes them, by a strict
load_state_dict, and compares what they compute with NAME.expected.safetensors.

The models are written here from their equations (docs/mathematics/); only names and shapes of tensors, names of classes
and the members of files are those of the released programs.
  adaptive-span.pt    zip form: a checkpoint, whose "model" is the state dict of a model on several cards
  all-attention.pt    older form: the same with persistent slots and clusters of words, tied
  transformer-xl.pt   older form: the whole model, as that program's model.pt
  clusters.bin        older form: the tensors of tests/golden/transfo-xl/clusters.safetensors
  vocab.pkl           a vocabulary as Hugging Face's class saves it
  cache.pt            zip form: a corpus of Transformer-XL with its vocabulary
  corpus.pt           older form: a corpus of the adaptive-span program
NAME.expected.safetensors has
  tokens             i32 [blocks, B, M]
  log_probabilities  f32 [blocks, B, M, V], as the model computes them
  exact              f64, the same from weights in f64, without the 1e-8 that the released program adds to divisors
"""

import collections
import math
import pathlib
import pickle
import sys
import types

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

from all_attention import band, rectangle
from transformer_xl import shift

FOLDER = pathlib.Path(__file__).parent.parent / "golden" / "released"
BLOCKS, STREAMS, LENGTH, VOCABULARY = 3, 2, 5, 30
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


# The program of adaptive spans and persistent memory.

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


# Transformer-XL. The classes have the names that they are pickled under.

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


# Files.

def pretend(module, *classes):
    """The classes are pickled as those of a module of that name."""
    sys.modules[module] = sys.modules.get(module) or types.ModuleType(module)
    for one in classes:
        one.__module__ = module
        setattr(sys.modules[module], one.__name__, one)


def fill(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("current_val"):
                parameter.copy_(torch.tensor([0.13, 0.61])[:, None, None])
            else:
                parameter.normal_(0, 0.3)  # large enough that every term shows in the probabilities
            if name.endswith(("norm1.weight", "norm2.weight", "layer_norm.weight")):
                parameter.add_(1)
    return model.eval()


def run(model, blocks):
    found, past = [], model.start()
    with torch.no_grad():
        for tokens in blocks:
            scores, past = model(tokens, past)
            found.append(scores)
    return torch.stack(found)


def save_expected(name, model):
    blocks = torch.randint(0, VOCABULARY, (BLOCKS, STREAMS, LENGTH))
    scores = run(model, blocks)
    exact = run(model.exact(), blocks)
    save_file({"tokens": blocks.to(torch.int32), "log_probabilities": scores, "exact": exact},
              FOLDER / f"{name}.expected.safetensors")
    print(name, "f32 and f64 differ by", (scores - exact).abs().max().item(), "; least and most likely",
          scores.min().item(), scores.max().item())


def save_checkpoint(name, model, newer):
    """As the adaptive-span program does after an iteration, with what its optimiser and its log hold."""
    on_cards = nn.DataParallel(model)
    optimizer = torch.optim.Adagrad([on_cards.module.key_pe], lr=0.07)
    log = {"step": [1000, 2000], "train_bpc": [1.5, 1.25], "val_bpc": [1.75, 1.5]}
    torch.save({"iter_no": 1, "model": on_cards.state_dict(), "logger": log, "optimizer": optimizer.state_dict(),
                "scheduler_iter": 2000}, FOLDER / f"{name}.pt", _use_new_zipfile_serialization=newer)


class Vocab:
    def __init__(self):
        words = ["<eos>"] + [f"word{number}" for number in range(VOCABULARY - 1)]
        self.counter = collections.Counter({word: 100 - number for number, word in enumerate(words[1:])})
        self.special, self.min_freq, self.max_size, self.lower_case = ["<eos>"], 0, None, False
        self.delimiter, self.vocab_file = None, None
        self.idx2sym = words
        self.sym2idx = collections.OrderedDict((word, number) for number, word in enumerate(words))
        self.eos_idx = 0


class Corpus:
    pass


def save_vocabularies():
    vocabulary = Vocab()
    with open(FOLDER / "vocab.pkl", "wb") as file:
        pickle.dump(vocabulary.__dict__, file)
    pretend("data_utils", Corpus)
    corpus = Corpus()
    corpus.dataset, corpus.vocab = "wt103", vocabulary
    corpus.train, corpus.valid, corpus.test = (torch.arange(count) for count in (6, 3, 3))
    torch.save(corpus, FOLDER / "cache.pt")
    pretend("data", Corpus)
    corpus = Corpus()
    corpus._dictionary = {word: number for word, number in reversed(vocabulary.sym2idx.items())}
    corpus.train, corpus.valid, corpus.test = (torch.arange(count) for count in (6, 3, 3))
    torch.save(corpus, FOLDER / "corpus.pt", _use_new_zipfile_serialization=False)


MODELS = {"adaptive-span": lambda: SpanModel(False, width=8, heads=2, span=12, ramp=4, slots=0, inner=12),
          "all-attention": lambda: SpanModel(True, width=16, heads=2, span=12, ramp=4, slots=3, inner=1),
          "transformer-xl": lambda: MemTransformerLM(width=8, heads=2, depth=3, inner=12, memory=7, clamp=6,
                                                     same_length=True, pre_norm=False)}


def read_exported(folder):
    for name, make in MODELS.items():
        model = make()
        model.load_state_dict(load_file(pathlib.Path(folder) / f"{name}.safetensors"))
        expected = load_file(FOLDER / f"{name}.expected.safetensors")
        difference = (run(model.eval(), expected["tokens"].long()) - expected["log_probabilities"]).abs().max().item()
        print(name, "differs by", difference)
        if difference > 1e-6:
            sys.exit(f"{name}: what was exported must compute the same")


def write_fixtures():
    FOLDER.mkdir(exist_ok=True)
    # What the older form keeps of a module's source stands for all that it could be.
    torch.serialization.get_source_lines_and_file = lambda one: (["import os; os.abort()\n"], 1, "source.py")
    pretend("mem_transformer", AdaptiveEmbedding, MemTransformerLM, PositionalEmbedding, PositionwiseFF,
            RelPartialLearnableDecoderLayer, RelPartialLearnableMultiHeadAttn)
    pretend("proj_adaptive_softmax", ProjectedAdaptiveLogSoftmax)
    pretend("vocabulary", Vocab)
    torch.manual_seed(3)
    spans = fill(MODELS["adaptive-span"]())
    save_checkpoint("adaptive-span", spans, newer=True)
    save_expected("adaptive-span", spans)
    slots = fill(MODELS["all-attention"]())
    save_checkpoint("all-attention", slots, newer=False)
    save_expected("all-attention", slots)
    memory = fill(MODELS["transformer-xl"]())
    torch.save(memory, FOLDER / "transformer-xl.pt", _use_new_zipfile_serialization=False)
    save_expected("transformer-xl", memory)
    torch.save(collections.OrderedDict(load_file(FOLDER.parent / "transfo-xl" / "clusters.safetensors")),
               FOLDER / "clusters.bin", _use_new_zipfile_serialization=False)
    save_vocabularies()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read_exported(sys.argv[2])
    else:
        write_fixtures()
