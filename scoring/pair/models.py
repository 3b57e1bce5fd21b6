"""Loads and checks two language models with the same tokenizer, each as a body and a linear head.

Loading refuses pairs that would silently give wrong numbers. Only safetensors are read, never pickled weights, and no
code of a model's folder is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scoring.engine.loading import (
    device_of,
    fits,
    from_folder,
    libraries,
    load_tokenizer,
    refuse_ids_without_rows,
    refuse_positions,
)
from scoring.engine.model_folder import weight_files
from scoring.errors import UnsupportedModel
from scoring.pair.settings import PairSettings

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

    from scoring.pair.vocabulary_pass import Head

_PROBES = (
    "The quick brown fox, it's said, jumped over 1,234 dogs.",
    "  Two  spaces\tand a tab\r\nnew line",
    "naïve café — “quotes” … 漢字 привет 😀",
    "<|endoftext|></s><s>[INST] >>TITLE<<",
    "def f(x): return x**2  # code",
)
# Names of a factor or a cap of the logits in configurations; a weak cap would pass the probe.
_SCALES = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier")


class LanguageModel(NamedTuple):
    """One model of the pair."""

    name: str
    body: Callable[..., Any]  # (input_ids [B, T], …) -> object whose `last_hidden_state` is [B, T, H]
    head: Head


class PairModels(NamedTuple):
    """A loaded pair."""

    observer: LanguageModel
    performer: LanguageModel
    tokenizer: Tokenizer | None  # None: only token ids are read
    pad_id: int  # its positions are left out of x_ppl: the pad token, or else the end of text; -1 = none
    device: torch.device

    @property
    def words(self) -> int:
        """Width of both heads, the limit of readable ids."""
        return int(self.observer.head.weight.shape[0])


def load_models(settings: PairSettings) -> PairModels:
    """Load the pair of `settings` from this machine's disk.

    Raises MissingExtra, MissingModel, UnsupportedModel, NoDevice, and DeviceLost if the device fails.
    """
    torch, transformers = libraries()
    device = device_of(settings, torch)
    transformers.utils.logging.disable_progress_bar()
    folders, names = settings.folders(), (settings.observer, settings.performer)
    tokenizer, _ = load_tokenizers(settings, folders)
    largest_id = max(tokenizer.backend_tokenizer.get_vocab().values())
    observer, performer = (
        _load(name, folder, device, settings, largest_id) for name, folder in zip(names, folders, strict=True)
    )
    words = [len(model.head.weight) for model in (observer, performer)]
    if words[0] != words[1]:
        raise UnsupportedModel(
            f"{names[0]} predicts {words[0]} words and {names[1]} {words[1]}: their predictions cannot be compared;"
            " take two models of one family"
        )
    pad_ids = [known for known in (tokenizer.pad_token_id, tokenizer.eos_token_id, -1) if known is not None]
    return PairModels(observer, performer, tokenizer.backend_tokenizer, int(pad_ids[0]), device)


def load_tokenizers(settings: PairSettings, folders: Sequence[Path]) -> list[Any]:
    """The fast tokenizers of both models; none of their code is run. Raises UnsupportedModel."""
    names = (settings.observer, settings.performer)
    tokenizers = [load_tokenizer(name, folder) for name, folder in zip(names, folders, strict=True)]
    # Both must split texts in the same way.
    both, hint = settings.title, "take two models of one family"
    first, second = (tokenizer.backend_tokenizer for tokenizer in tokenizers)
    ids, others = first.get_vocab(), second.get_vocab()
    if ids != others:
        token = min(token for token in {**ids, **others} if ids.get(token) != others.get(token))
        raise UnsupportedModel(
            f"{both} have different vocabularies ({len(ids)} and {len(others)} tokens): {token!r} is"
            f" {ids.get(token, 'unknown')} to one and {others.get(token, 'unknown')} to the other; {hint}"
        )
    for probe in _PROBES:
        if first.encode(probe).tokens != second.encode(probe).tokens:
            raise UnsupportedModel(f"{both} cut {probe!r} differently; {hint}")
    return tokenizers


def _load(name: str, folder: Path, device: torch.device, settings: PairSettings, largest_id: int) -> LanguageModel:
    torch, transformers = libraries()
    from scoring.pair.body import fast_body
    from scoring.pair.vocabulary_pass import Head

    weight_files(folder)
    dtype = torch.bfloat16 if settings.number_format == "fp8" else getattr(torch, settings.number_format)
    model, loading = from_folder(transformers.AutoModelForCausalLM.from_pretrained, name, folder, dtype=dtype)
    if absent := sorted(loading["missing_keys"]):  # transformers would use random numbers instead
        raise UnsupportedModel(
            f"the weights of {name} in {folder} lack {absent[0]} ({len(absent)} tensors): copy it anew"
        )
    with fits(name, device, settings.number_format):
        model = model.eval().requires_grad_(False).to(device)
        _check(name, model, settings, largest_id)
        if settings.number_format == "fp8":
            from scoring.engine.fp8 import shrink_linears

            shrink_linears(model.base_model)
    output = model.get_output_embeddings()
    return LanguageModel(name, fast_body(model.base_model), Head(output.weight, output.bias))


def _check(name: str, model: Any, settings: PairSettings, largest_id: int) -> None:
    """Raises UnsupportedModel for a model whose numbers would be wrong, or that a token could crash."""
    torch, _ = libraries()
    refuse_positions(name, settings, getattr(model.config, "max_position_embeddings", None))
    for field in _SCALES:
        value = getattr(model.config, field, None)
        if value is not None and value != 1:
            raise UnsupportedModel(
                f"{name} changes its logits behind the head ({field} = {value}): it cannot be scored with"
            )
    output, kind = model.get_output_embeddings(), type(model).__name__
    if not isinstance(output, torch.nn.Linear) or model.base_model is model:
        raise UnsupportedModel(f"{name} ({kind}) has no linear head over a body: take another model")
    rows = min(model.get_input_embeddings().weight.shape[0], output.weight.shape[0])
    refuse_ids_without_rows(name, largest_id, rows)
    # The logits of a short probe must be hidden @ weight.T + bias, without a scale or a cap after the head.
    ids = (torch.arange(16, device=output.weight.device) * 7 % output.weight.shape[0]).unsqueeze(0)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits.float()
        hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
        expected = torch.nn.functional.linear(hidden, output.weight, output.bias).float()
    apart, scale = float((logits - expected).abs().max()), float(expected.abs().max())
    if math.isfinite(scale) and not apart <= 1e-3 * scale:  # broken weights: each text is then not_a_number
        raise UnsupportedModel(
            f"{name} ({kind}) changes its logits behind the head (by {apart:.3g} of {scale:.3g}): it cannot be scored"
            " with"
        )
