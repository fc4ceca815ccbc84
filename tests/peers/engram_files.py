"""Reads what the program engram writes: configs, checkpoints and data folders. Formats: docs/reference/checkpoints.md."""

import json
import pathlib
import struct
import tomllib

import numpy
import torch


MODEL_DEFAULTS = {
    "all_attention": {"memory_mode": "all", "inner": 0, "slots": 0, "span": "adaptive", "ramp": 32, "span_init": 0.0,
                      "mask_offset": 0, "pad": "attend_zero", "dropout": 0.0, "embedding_dropout": 0.0},
    "transformer_xl": {"depth": 0, "positions": "relative", "tie_position_biases": True, "pre_norm": False, "memory": 0,
                       "visibility": "all", "memory_start": "empty", "clamp": 0, "embedding_width": 0, "cutoffs": [],
                       "tie_tables": True, "dropout": 0.0, "attention_dropout": 0.0, "dropout_over_time": False, "word_dropout": 0.0,
                       "norm_epsilon": 1e-5},
    "product_key": {"inner": 0, "activation": "gelu", "position_rows": 512, "pre_norm": False, "dropout": 0.0,
                    "attention_dropout": 0.0, "norm_epsilon": 1e-12},
    "recurrent": {"embedding_width": 0, "encoder": "lstm", "readout": "key_value_predict", "window": 5,
                  "missing": "masked", "carry": "detached", "init_range": 0.1}}
MEMORY_DEFAULTS = {"count": 0, "layers": [], "placement": "replace", "keys": "product", "factors": 2, "subkeys": 512,
                   "heads": 4, "selected": 32, "query_width": 512, "value_width": 0, "projection": False,
                   "shared_values": False, "gate": "none", "query_network": "linear", "query_norm": "batch",
                   "unit_keys": False, "value_dtype": "f32", "input_dropout": 0.0, "query_dropout": 0.0,
                   "value_dropout": 0.0}
TABLE_DEFAULTS = {"table_kind": "adam", "table_mode": "lazy", "table_rate": 1e-3, "table_beta1": 0.9,
                  "table_beta2": 0.999, "table_epsilon": 1e-8, "table_clip": 0.0}


def read_config(path):
    """A config file as nested dictionaries; keys that are left out have the program's defaults."""
    return with_defaults(tomllib.loads(pathlib.Path(path).read_text()))


def with_defaults(config):
    if "adaptive_span" in config["model"]:  # as older versions wrote it
        config["model"]["span"] = "adaptive" if config["model"].pop("adaptive_span") else "fixed"
    family = config["model"].get("family", "all_attention")
    model = {"family": family} | MODEL_DEFAULTS[family]
    if family == "product_key":
        model["product_key"] = MEMORY_DEFAULTS | config.get("product_key", {})
    elif config.get("product_key", {}).get("count", 0) or config.get("product_key", {}).get("layers", []):
        raise ValueError(f"the peer of family {family} knows no memories, got {config['product_key']}")
    optimizer = TABLE_DEFAULTS | {"kind": "adagrad", "clip": 0.0, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    training = {"span_loss": 0.0}
    if config.get("training", {}).get("extension", 0):
        raise ValueError(f"the peers know only training.extension = 0, got {config['training']['extension']}")
    return {"model": model | config["model"], "optimizer": optimizer | config.get("optimizer", {}),
            "schedule": config.get("schedule", {}), "training": training | config.get("training", {})}


class Checkpoint:
    """The tensors of RUN_DIR/checkpoint/model.safetensors, or of the file itself, and the run's config."""

    def __init__(self, path):
        path = pathlib.Path(path)
        file = path / "checkpoint" / "model.safetensors" if path.is_dir() else path
        content = file.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        metadata = header.pop("__metadata__")
        self.config = with_defaults(tomllib.loads(metadata["engram.config"]))
        self.tensors = {}
        for name, entry in header.items():
            if entry["dtype"] != "F32":
                raise ValueError(f"{file}: tensors must be F32, got {entry['dtype']} for {name}")
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            values = numpy.frombuffer(content[begin:end], dtype="<f4").reshape(entry["shape"])
            self.tensors[name] = torch.from_numpy(values.copy())


def read_tokens(data_folder, split):
    """All ids of a split, as a tensor of int64."""
    content = (pathlib.Path(data_folder) / f"{split}.tokens").read_bytes()
    if content[:8] != b"ENGRAMTK":
        raise ValueError(f"{data_folder}: {split}.tokens must begin with ENGRAMTK, got {content[:8]}")
    (width,) = struct.unpack("<I", content[12:16])
    kind = {1: "<u1", 2: "<u2", 4: "<i4"}[width]
    return torch.from_numpy(numpy.frombuffer(content[56:], dtype=kind).astype("int64"))


def bench_tokens(rows, length, vocabulary, which):
    """The ids that `engram bench` trains on: [rows, length]."""
    index = numpy.arange(rows * length, dtype="uint64") + numpy.uint64(which * 0x10001)
    mixed = (index * numpy.uint64(2654435761)) % numpy.uint64(1 << 32) >> numpy.uint64(7)
    return torch.from_numpy((mixed % numpy.uint64(vocabulary)).astype("int64")).reshape(rows, length)
