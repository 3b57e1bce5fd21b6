"""Tiny random sequence classifiers for tests: real architectures and file formats, nothing downloaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scoring.encoder.settings import EncoderSettings
from tests.support.pairs import build_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Backbone = Literal["deberta-v2", "llama", "modernbert", "roberta"]
BACKBONES: tuple[Backbone, ...] = ("deberta-v2", "modernbert", "roberta")
LABELS = ("human", "llm")
_SPECIAL = {"pad_token": "<pad>", "cls_token": "<cls>", "sep_token": "<sep>"}
_WIDTH = 32


def build_encoder(folder: Path, backbone: Backbone, labels: tuple[str, ...] = LABELS, *, pooled: bool = False) -> Path:
    """Write a classifier of these labels into `folder`: as transformers does, or as a backbone below `model.`."""
    import torch
    import transformers
    from safetensors.torch import save_file

    quiet: Any = transformers.utils.logging.disable_progress_bar
    quiet()
    tokenizer = _tokenizer()
    config = _config(backbone, tokenizer)
    config.id2label, config.label2id = dict(enumerate(labels)), {label: at for at, label in enumerate(labels)}
    kind: Any = transformers.AutoModel if pooled else transformers.AutoModelForSequenceClassification
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = kind.from_config(config).eval()
        head = torch.nn.Linear(_WIDTH, 1)
    if pooled:
        folder.mkdir(parents=True)
        config.architectures = ["DetectorOfItsOwn"]
        config.save_pretrained(folder)
        tensors = {f"model.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
        tensors |= {f"classifier.{name}": tensor for name, tensor in head.state_dict().items()}
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        model.save_pretrained(folder)
    fast: Any = transformers.PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, **_SPECIAL).save_pretrained(folder)
    return folder


def settings_of(folder: Path, **changes: Any) -> EncoderSettings:
    """Settings under which the classifier reads any text, with `changes`."""
    usual: dict[str, Any] = {"max_tokens": 64, "min_tokens": 2, "english_only": False}
    return EncoderSettings(model=str(folder), **(usual | changes))


def change_config(folder: Path, **changes: object) -> None:
    """Change fields of the classifier's config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _tokenizer() -> Tokenizer:
    """One that puts <cls> before and <sep> behind a text."""
    from tokenizers import AddedToken, processors

    tokenizer = build_tokenizer("falcon")
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL.values()])
    ends = [(token, tokenizer.token_to_id(token)) for token in ("<cls>", "<sep>")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<cls> $A <sep>", pair="<cls> $A <sep> $B <sep>", special_tokens=ends
    )
    return tokenizer


def _config(backbone: Backbone, tokenizer: Tokenizer) -> Any:
    from transformers import AutoConfig

    for_model: Any = AutoConfig.for_model
    shared: dict[str, Any] = {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": _WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "initializer_range": 0.3,
        "pad_token_id": tokenizer.token_to_id("<pad>"),
    }
    if backbone == "deberta-v2":  # as DeBERTa-v3
        return for_model(
            "deberta-v2",
            relative_attention=True,
            position_buckets=16,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type=["p2c", "c2p"],
            position_biased_input=False,
            max_position_embeddings=32,
            type_vocab_size=0,
            **shared,
        )
    if backbone == "modernbert":
        ends = {"bos_token_id": 0, "eos_token_id": 0, "cls_token_id": 0, "sep_token_id": 0}
        return for_model("modernbert", local_attention=16, max_position_embeddings=512, **ends, **shared)
    if backbone == "llama":
        return for_model("llama", **{**shared, "pad_token_id": None})
    # positions of real tokens begin behind the id of the padding
    return for_model("roberta", max_position_embeddings=96 + shared["pad_token_id"] + 1, **shared)
