"""Writes tests/golden/transfo-xl/: small Transformer-XLs of Hugging Face's own class, and what they compute.

    python3 -m venv venv && venv/bin/pip install transformers==4.35.2 torch "numpy<2" safetensors sacremoses
    venv/bin/python tests/golden/transfo_xl_fixture.py

For each model: NAME.safetensors, its whole state dict; NAME.json, its config.json; NAME.expected.safetensors with
  tokens             i32 [segments, B, S]
  log_probabilities  f32 [segments, B, S, V], as the model computes them
  exact              f64, the same from weights in f64 and with sinusoids that were never rounded to f32
The segments follow each other with the model's memory, in eval mode.
"""

import pathlib

import torch
from safetensors.torch import save_file
from transformers import TransfoXLConfig, TransfoXLLMHeadModel

FOLDER = pathlib.Path(__file__).parent / "transfo-xl"
STREAMS, LENGTHS, VOCABULARY = 2, 6, 30

SIZES = dict(vocab_size=VOCABULARY, d_model=16, n_head=2, d_head=6, d_inner=24, n_layer=2, adaptive=True)
MODELS = {
    # As the published checkpoint is built: clusters, the first projection alone untied, own biases in each layer.
    "clusters": dict(cutoffs=[10, 20], d_embed=16, div_val=2, mem_len=8, clamp_len=5, same_length=True, untie_r=True),
    # No clusters, vectors shorter than states, biases shared by all layers, norms before sublayers.
    "plain": dict(cutoffs=[], d_embed=12, div_val=1, mem_len=8, clamp_len=-1, same_length=False, untie_r=False,
                  pre_lnorm=True),
    # Clusters of one table; input and output have their own.
    "one-table": dict(cutoffs=[10, 20], d_embed=8, div_val=1, mem_len=4, clamp_len=0, same_length=True, untie_r=True,
                      tie_word_embeddings=False),
}


def run(model, segments):
    found, memories = [], None
    with torch.no_grad():
        for tokens in segments:
            result = model(tokens, mems=memories)
            found.append(result.prediction_scores)
            memories = result.mems
    return torch.stack(found)


def run_exactly(model, segments):
    exact = model.double()
    exact.transformer.pos_emb.inv_freq = 1 / 10000 ** (torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    rounding = torch.Tensor.float
    torch.Tensor.float = torch.Tensor.double  # the class masks its scores in f32, whatever they are in
    try:
        return run(exact, segments)
    finally:
        torch.Tensor.float = rounding


def make(name, options, seed):
    torch.manual_seed(seed)
    config = TransfoXLConfig(**SIZES, **options)
    model = TransfoXLLMHeadModel(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            parameter.normal_(0, 0.3)  # large enough that every term shows in the probabilities
            if parameter_name.endswith("layer_norm.weight"):
                parameter.add_(1)
    # The class ties in its constructor only what it makes there.
    model.tie_weights()
    segments = torch.randint(0, VOCABULARY, (2, STREAMS, LENGTHS))
    scores = run(model, segments)
    state = {key: value.detach().clone().contiguous() for key, value in model.state_dict().items()}
    save_file(state, FOLDER / f"{name}.safetensors", metadata={"format": "pt"})
    config.architectures = ["TransfoXLLMHeadModel"]
    (FOLDER / f"{name}.json").write_text(config.to_json_string())
    scores64 = run_exactly(model, segments)
    save_file({"tokens": segments.to(torch.int32), "log_probabilities": scores, "exact": scores64},
              FOLDER / f"{name}.expected.safetensors")
    print(name, len(state), "tensors; f32 and f64 differ by", (scores - scores64).abs().max().item(),
          "; least and most likely", scores.min().item(), scores.max().item())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for number, (model_name, model_options) in enumerate(MODELS.items()):
        make(model_name, model_options, 7 + number)
