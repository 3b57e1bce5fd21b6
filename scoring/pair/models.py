"""Loads and checks two language models with the same tokenizer, each as a body and a linear head.

Loading refuses pairs that would silently give wrong numbers. Only safetensors are read, never pickled weights, and no
code of a model's folder is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scoring.errors import DeviceLost, NoDevice, OutOfDeviceMemory, UnsupportedModel
from scoring.pair.model_folder import weight_files
from scoring.pair.settings import PairSettings
from stream.text.user_errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_FULL = ("out of memory", "can't allocate memory", "cublas_status_alloc_failed")


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


def libraries() -> tuple[Any, Any]:
    """torch and transformers. Raises MissingExtra."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra(f"a pair needs torch and transformers ({error.name} is missing)", extra="gpu") from error
    return torch, transformers


def load_models(settings: PairSettings) -> PairModels:
    """Load the pair of `settings` from this machine's disk.

    Raises MissingExtra, MissingModel, UnsupportedModel, NoDevice, and DeviceLost if the device fails.
    """
    torch, transformers = libraries()
    device = device_named(settings.device, torch)
    transformers.utils.logging.disable_progress_bar()
    folders, names = settings.folders(), (settings.observer, settings.performer)
    tokenizer, _ = load_tokenizers(transformers, settings, folders)
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


@contextmanager
def device_errors(*, on_card: bool) -> Iterator[None]:
    """Translate errors of a full device into OutOfDeviceMemory, and other errors of work `on_card` into DeviceLost.

    torch has no one type for a lost card: torch, Triton, the driver and the libraries raise RuntimeErrors.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        said = str(error).lower()
        full = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
        if full or any(sign in said for sign in _FULL):
            raise OutOfDeviceMemory(_line(error)) from error
        if on_card:
            raise DeviceLost(
                f"the device failed: {_line(error)}; the models are loaded again at the next call"
            ) from error
        raise


def device_named(name: str, libtorch: Any) -> torch.device:
    """The device of `score.pair.device`. Raises NoDevice for a card that torch does not see."""
    device: torch.device = libtorch.device(name)
    if device.type == "cuda":
        cards = libtorch.cuda.device_count() if libtorch.cuda.is_available() else 0
        if (device.index or 0) >= cards:
            raise NoDevice(
                f"score.pair.device is {name!r} and torch sees {cards} CUDA cards: mend the driver, name another card,"
                ' or set device = "cpu" with small models'
            )
    return device


def load_tokenizers(transformers: Any, settings: PairSettings, folders: Sequence[Path]) -> list[Any]:
    """The fast tokenizers of both models; none of their code is run. Raises UnsupportedModel."""
    tokenizers = []
    for name, folder in zip((settings.observer, settings.performer), folders, strict=True):
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, use_fast=True, trust_remote_code=False, local_files_only=True
            )
        except Exception as error:  # many types for broken, absent and foreign files
            raise UnsupportedModel(f"the tokenizer of {name} in {folder} cannot be loaded: {_line(error)}") from error
        if getattr(tokenizer, "backend_tokenizer", None) is None:
            raise UnsupportedModel(f"{name} has no fast tokenizer (tokenizer.json): take a model that has one")
        tokenizers.append(tokenizer)
    # Both must split texts in the same way.
    both, hint = f"{settings.observer} and {settings.performer}", "take two models of one family"
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
    try:
        model, loading = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=getattr(torch, settings.number_format),
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except Exception as error:  # many types for broken, absent and foreign files
        raise UnsupportedModel(f"{name} in {folder} cannot be loaded: {_line(error)}") from error
    if absent := sorted(loading["missing_keys"]):  # transformers would use random numbers instead
        raise UnsupportedModel(
            f"the weights of {name} in {folder} lack {absent[0]} ({len(absent)} tensors): copy it anew"
        )
    try:
        with device_errors(on_card=device.type == "cuda"):
            model = model.eval().requires_grad_(False).to(device)
            _check(name, model, settings, largest_id)
    except OutOfDeviceMemory as error:
        raise NoDevice(
            f"{name} does not fit into the memory of {device} as {settings.number_format}: take a larger card, or"
            " smaller models"
        ) from error
    output = model.get_output_embeddings()
    return LanguageModel(name, fast_body(model.base_model), Head(output.weight, output.bias))


def _check(name: str, model: Any, settings: PairSettings, largest_id: int) -> None:
    """Raises UnsupportedModel for a model whose numbers would be wrong, or that a token could crash."""
    torch, _ = libraries()
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and settings.max_tokens > positions:
        raise UnsupportedModel(f"{name} knows {positions} positions: set score.pair.max_tokens to at most that")
    for field in _SCALES:
        value = getattr(model.config, field, None)
        if value is not None and value != 1:
            raise UnsupportedModel(
                f"{name} changes its logits behind the head ({field} = {value}): it cannot be scored with"
            )
    output, kind = model.get_output_embeddings(), type(model).__name__
    if not isinstance(output, torch.nn.Linear) or model.base_model is model:
        raise UnsupportedModel(f"{name} ({kind}) has no linear head over a body: take another model")
    # Every id of the tokenizer must be a row of the embedding and of the head: on a GPU another id is fatal.
    rows = min(model.get_input_embeddings().weight.shape[0], output.weight.shape[0])
    if largest_id >= rows:
        raise UnsupportedModel(
            f"the tokenizer of {name} gives ids up to {largest_id} and the model has rows for {rows}: take the"
            " tokenizer that belongs to it, or resize the model's embeddings"
        )
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


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
