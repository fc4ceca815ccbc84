"""The families of models that have a peer, and what differs between them. A peer is called with tokens [B, M] and its
caches, and returns logits [B, M, V] and the caches after the block."""

from dataclasses import dataclass
from typing import Callable

from all_attention import Adagrad, AllAttention
from key_value_predict import KeyValuePredict
from product_key import ProductKeyTransformer, TableAdam
from transformer_xl import ClippedAdam, TransformerXl


@dataclass
class Family:
    model: Callable  # of the options of section [model]
    optimizer: Callable  # of the model, the learning rate and the options of section [optimizer]
    streams: int  # side by side in `engram evaluate`
    whole_blocks: bool  # whether it leaves out the tokens after the last whole block of a stream


FAMILIES = {"all_attention": Family(AllAttention, Adagrad, streams=8, whole_blocks=True),
            "transformer_xl": Family(TransformerXl, ClippedAdam, streams=10, whole_blocks=False),
            "product_key": Family(ProductKeyTransformer, TableAdam, streams=10, whole_blocks=False),
            "recurrent": Family(KeyValuePredict, ClippedAdam, streams=10, whole_blocks=False)}


def family_of(config):
    return FAMILIES[config["model"]["family"]]


def load(model, tensors):
    """From a checkpoint's tensors; what is not of the model (optimiser, caches) is left out."""
    own = {name: value for name, value in tensors.items() if "/" not in name}
    if hasattr(model, "load_engram"):
        model.load_engram(own)  # has other names
    else:
        model.load_state_dict(own)
