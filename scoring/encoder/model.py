"""Loads a trained sequence classifier as a function from token ids to one logit, high for a language model's text.

Two layouts of a folder are known:

    classifier  transformers' AutoModelForSequenceClassification. Its logit, if there is one; otherwise, with l the
                logits and i the label of LLM texts, l_i - log sum_(j != i) exp(l_j), which is l_i - l_j for two labels.
    pooled      tensors `model.*`, a backbone, and `classifier.weight` [1, H], `classifier.bias` [1]: linear on the mean
                of the last hidden states over the text's tokens, special ones included (Desklib's detectors).

Tensors that are missing, too many, or of another shape refuse the folder: transformers would use random numbers, or
leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scoring.encoder.settings import EncoderSettings
from scoring.engine.loading import (
    device_of,
    error_line,
    fits,
    from_folder,
    libraries,
    load_config,
    load_tokenizer,
    refuse_ids_without_rows,
    refuse_positions,
)
from scoring.engine.model_folder import weight_files
from scoring.errors import UnsupportedModel
from stream.text.wording import counted

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

_LLM_LABELS = frozenset(
    ("ai", "ai-generated", "chatgpt", "fake", "generated", "gpt", "llm", "machine", "machine-generated")
)
_POOLED_HEAD = frozenset(("classifier.weight", "classifier.bias"))
_UNUSED = "position_ids"  # a buffer that old versions of transformers stored


class EncoderModel(NamedTuple):
    """A loaded classifier."""

    logits: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # ids and mask [B, T] -> [B] float32
    tokenizer: Tokenizer
    words: int  # rows of its embedding
    pad_id: int
    device: torch.device


def load_encoder(settings: EncoderSettings) -> EncoderModel:
    """Load the classifier of `settings` from this machine's disk.

    Raises MissingExtra, MissingModel, UnsupportedModel, NoDevice, and DeviceLost if the device fails.
    """
    torch, transformers = libraries()
    from scoring.encoder.disentangled import speed_up_attention
    from scoring.engine.linears import widen_linears

    device = device_of(settings, torch)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # its report of tensors is judged below
    name, files = settings.model, load_small_files(settings)
    how: dict[str, Any] = {"dtype": getattr(torch, settings.number_format)}
    if files.pooled:
        load, how["key_mapping"] = transformers.AutoModel.from_pretrained, {r"^model\.": ""}
    else:
        load = transformers.AutoModelForSequenceClassification.from_pretrained
    model, report = from_folder(load, name, files.folder, **how)
    _refuse_unfitting(name, report, _POOLED_HEAD if files.pooled else frozenset())
    rows = int(model.get_input_embeddings().weight.shape[0])
    refuse_ids_without_rows(name, max(files.tokenizer.backend_tokenizer.get_vocab().values()), rows)
    refuse_positions(name, settings, _positions(model))
    with fits(name, device, settings.number_format):
        model = model.eval().requires_grad_(False).to(device)
        head = _pooled_head(name, files, model) if files.pooled else []
    widen_linears(model)
    speed_up_attention(model.base_model)
    pad_id = model.config.pad_token_id = int(files.tokenizer.pad_token_id)  # decoders look for the token before it
    logits = partial(window_logits, model, head, files.llm_index)
    return EncoderModel(logits, files.tokenizer.backend_tokenizer, rows, pad_id, device)


def window_logits(
    model: Any, head: Sequence[torch.Tensor], llm_index: int, ids: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """The logits of ids [B, T], see the module; `head` is the pooled layout's weight and bias."""
    found = model(input_ids=ids, attention_mask=mask)
    logits: torch.Tensor
    if head:
        weight, bias = head
        weights = mask.unsqueeze(-1).float()
        mean = (found.last_hidden_state.float() * weights).sum(1) / weights.sum(1)
        logits = mean @ weight.T + bias
    else:
        logits = found.logits.float()
    if logits.shape[1] == 1:
        return logits.squeeze(1)
    rest = [index for index in range(logits.shape[1]) if index != llm_index]
    return logits[:, llm_index] - logits[:, rest].logsumexp(1)


class SmallFiles(NamedTuple):
    """A model's folder without its numbers."""

    folder: Path
    tokenizer: Any
    places: Mapping[str, Path]  # tensor -> its file
    pooled: bool  # the layout
    llm_index: int  # the label of LLM texts, among several


def load_small_files(settings: EncoderSettings) -> SmallFiles:
    """Everything of the model but its numbers. Raises MissingModel, UnsupportedModel."""
    from safetensors import SafetensorError, safe_open

    folder, name = settings.folder(), settings.model
    places: dict[str, Path] = {}
    try:
        for file in weight_files(folder):
            with safe_open(file, framework="pt") as tensors:
                places.update(dict.fromkeys(tensors.keys(), file))
    except SafetensorError as error:
        raise UnsupportedModel(f"{name} in {folder} cannot be loaded: {error_line(error)}") from error
    config = load_config(name, folder)
    if getattr(config, "quantization_config", None):
        raise UnsupportedModel(f"{name} is quantised: take its weights in bfloat16, float16 or float32")
    others = places.keys() - _POOLED_HEAD
    pooled = len(others) == len(places) - len(_POOLED_HEAD) and all(tensor.startswith("model.") for tensor in others)
    one_logit = pooled or config.num_labels == 1
    index = _llm_index(settings, config.id2label, one_logit=one_logit)
    tokenizer = load_tokenizer(name, folder)
    if tokenizer.pad_token_id is None:
        raise UnsupportedModel(f"the tokenizer of {name} has no token for padding, which texts of a batch need")
    return SmallFiles(folder, tokenizer, places, pooled, index)


def _llm_index(settings: EncoderSettings, labels: Mapping[int, str], *, one_logit: bool) -> int:
    """The place of the label of LLM texts. Raises UnsupportedModel if it is unknown."""
    if one_logit:
        if settings.llm_label:
            raise UnsupportedModel(f"{settings.model} has one logit: unset score.encoder.llm_label")
        return 0
    wanted = {settings.llm_label.lower()} if settings.llm_label else _LLM_LABELS
    found = [index for index, label in labels.items() if str(label).lower() in wanted]
    if len(found) != 1:
        known = ", ".join(str(label) for label in labels.values())[:300]
        raise UnsupportedModel(
            f"it is not known which label of {settings.model} is the one of LLM texts: set score.encoder.llm_label to"
            f" one of {known}"
        )
    return found[0]


def _refuse_unfitting(name: str, report: Mapping[str, Any], head: frozenset[str]) -> None:
    """Raises UnsupportedModel with the tensors that the model lacks, or has no place for."""
    missing = sorted(report["missing_keys"])
    many = sorted(tensor for tensor in set(report["unexpected_keys"]) - head if not tensor.endswith(_UNUSED))
    said = [
        f"{', '.join(tensors[:3])}{' …' if len(tensors) > 3 else ''} {what} ({counted(len(tensors), 'tensor')})"
        for tensors, what in ((missing, "missing"), (many, "too many"))
        if tensors
    ]
    if said:
        raise UnsupportedModel(
            f"{name} is no sequence classifier that is known here: {'; '.join(said)}. Take a folder of"
            " AutoModelForSequenceClassification, or one with a backbone under model. and a linear classifier."
        )


def _positions(model: Any) -> int | None:
    """Rows of the table of absolute positions for tokens; None without one: relative positions have no end."""
    for place, table in model.named_modules():
        if place.endswith("position_embeddings") and hasattr(table, "num_embeddings"):
            return int(table.num_embeddings) - (0 if table.padding_idx is None else table.padding_idx + 1)
    return None


def _pooled_head(name: str, files: SmallFiles, model: Any) -> list[torch.Tensor]:
    """Weight and bias of the classifier. Raises UnsupportedModel for another shape than one logit's."""
    from safetensors import safe_open

    head = []
    for tensor, shape in (("classifier.weight", (1, model.config.hidden_size)), ("classifier.bias", (1,))):
        with safe_open(files.places[tensor], framework="pt") as tensors:
            numbers: torch.Tensor = tensors.get_tensor(tensor)
        if tuple(numbers.shape) != shape:
            raise UnsupportedModel(f"{tensor} of {name} is {tuple(numbers.shape)}, and one logit needs {shape}")
        head.append(numbers.to(model.device).float())
    return head
