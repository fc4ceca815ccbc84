"""The recurrent models of docs/guide/key-value-predict.md in plain PyTorch, written as one would write them first: nn.LSTM, every
window's rows side by side, and all logits at once."""

import torch
from torch import nn
from torch.nn import functional

PARTS = {"identity": 1, "attention": 1, "key_value": 2, "key_value_predict": 3}
# The variants of the family that the equations below are of.
ONLY = {"encoder": "lstm", "missing": "masked"}


class Attention(nn.Module):
    """states: [B, C + M, k], of which M are of this block -> [B, M, d]. Position t sees the L before it."""

    def __init__(self, model, bound):
        super().__init__()
        self.parts, self.window = PARTS[model["readout"]], model["window"]
        self.depth = model["width"] // self.parts
        uniform = lambda *shape: nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))
        self.key, self.query = uniform(self.depth, self.depth), uniform(self.depth, self.depth)
        self.score, self.output = uniform(self.depth), uniform(self.depth, 2 * self.depth)

    def windows(self, rows, block):
        """[B, C + M, n] -> [B, M, n, L]: what lies before each of the last M rows, oldest first, zeros before the first."""
        rows = functional.pad(rows, (0, 0, self.window, 0))[:, :-1]
        return rows.unfold(1, self.window, 1)[:, -block:]

    def forward(self, states, block):
        parts = states.split(self.depth, -1)
        keys, values, predicts = parts[0], parts[min(1, self.parts - 1)], parts[-1]
        projected = self.windows(functional.linear(keys, self.key), block)
        queries = functional.linear(keys[:, -block:], self.query)
        scores = torch.einsum("btnl,n->btl", torch.tanh(projected + queries.unsqueeze(-1)), self.score)
        exists = self.windows(torch.ones_like(states[:1, :, :1]), block)[:, :, 0] > 0
        # Of a window of nothing the softmax would be NaN: there every weight is 0.
        weights = torch.softmax(scores.masked_fill(~exists, -1e30), -1) * exists
        context = torch.einsum("btl,btnl->btn", weights, self.windows(values, block))
        return torch.tanh(functional.linear(torch.cat([context, predicts[:, -block:]], -1), self.output))


class KeyValuePredict(nn.Module):
    """Tokens in, logits out. The caches: h and c of the LSTM and the last L states."""

    def __init__(self, model):
        super().__init__()
        for name, known in ONLY.items():
            if model[name] != known:
                raise ValueError(f"the peer knows only model.{name} = {known}, got {model[name]}")
        if model["readout"] not in PARTS:
            raise ValueError(f"the peer knows only the readouts {list(PARTS)}, got {model['readout']}")
        self.bound, self.units = model["init_range"], model["width"]
        self.attends = model["readout"] != "identity"
        self.carries = model["carry"] == "detached"
        self.longest_past = model["window"] if self.attends else 0
        vector = model["embedding_width"] or self.units
        self.embedding = nn.Embedding(model["vocabulary"], vector)
        self.encoder = nn.LSTM(vector, self.units, batch_first=True)
        self.readout = Attention(model, self.bound) if self.attends else nn.Identity()
        width = self.units // PARTS[model["readout"]]
        self.output = nn.Linear(width, model["vocabulary"])
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.uniform_(-self.bound, self.bound)
            self.encoder.bias_ih_l0[self.units:2 * self.units] = 1
            self.encoder.bias_hh_l0.zero_()  # Engram has one bias
        self.encoder.bias_hh_l0.requires_grad_(False)

    def load_engram(self, tensors):
        names = {"encoder.input": "encoder.weight_ih_l0", "encoder.recurrent": "encoder.weight_hh_l0",
                 "encoder.bias": "encoder.bias_ih_l0"}
        known = {names.get(name, name): value for name, value in tensors.items()}
        self.load_state_dict(known | {"encoder.bias_hh_l0": torch.zeros(4 * self.units)})

    def empty_caches(self, batch):
        state = torch.zeros(1, batch, self.units, device=self.output.weight.device)
        return [state, state, state[0].unsqueeze(1)[:, :0]]

    def empty_key_caches(self, batch):
        return self.empty_caches(batch)  # nothing is computed twice anyway

    def forward(self, tokens, caches):
        """tokens: [B, M]. Returns logits [B, M, V] and the caches after the block."""
        h, c, before = caches
        states, (h, c) = self.encoder(self.embedding(tokens), (h, c))
        after = torch.cat([before, states.detach()], 1)[:, -self.longest_past:] if self.attends else before
        hidden = states
        if self.attends:
            seen = torch.cat([before, states], 1) if self.carries or not self.training else states
            hidden = self.readout(seen, tokens.shape[1])
        return self.output(hidden), [h.detach(), c.detach(), after]
