"""What loading a model takes, whatever its kind: libraries, a device, a tokenizer whose ids the model has.

Only safetensors are read, never pickled weights, and no code of a model's folder is run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scoring.engine.settings import EngineSettings
from scoring.errors import DeviceLost, NoDevice, OutOfDeviceMemory, UnsupportedModel
from stream.text.user_errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

Loaded = TypeVar("Loaded")
FP8_CAPABILITY = (9, 0)
_FULL = ("out of memory", "can't allocate memory", "cublas_status_alloc_failed")


def libraries() -> tuple[Any, Any]:
    """torch and transformers. Raises MissingExtra."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra(
            f"language models need torch and transformers ({error.name} is missing)", extra="gpu"
        ) from error
    return torch, transformers


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
            raise OutOfDeviceMemory(error_line(error)) from error
        if on_card:
            raise DeviceLost(
                f"the device failed: {error_line(error)}; the models are loaded again at the next call"
            ) from error
        raise


def device_of(settings: EngineSettings, libtorch: Any) -> torch.device:
    """The device of `settings`. Raises NoDevice for a card that torch does not see, or that lacks the number format."""
    device: torch.device = libtorch.device(settings.device)
    if device.type == "cuda":
        cards = libtorch.cuda.device_count() if libtorch.cuda.is_available() else 0
        if (device.index or 0) >= cards:
            raise NoDevice(
                f"{settings.table}.device is {settings.device!r} and torch sees {cards} CUDA cards: mend the driver,"
                ' name another card, or set device = "cpu" with small models'
            )
    if settings.number_format == "fp8":
        _refuse_without_fp8(settings, device, libtorch)
    return device


def _refuse_without_fp8(settings: EngineSettings, device: torch.device, libtorch: Any) -> None:
    """Raises NoDevice if `device`, or this torch, does not multiply in FP8 by rows."""
    have = f"{device} is no CUDA card"
    if device.type == "cuda":
        capability = libtorch.cuda.get_device_capability(device)
        have = f"{libtorch.cuda.get_device_name(device)} has {'.'.join(map(str, capability))}"
        if capability >= FP8_CAPABILITY:
            have = ""
    if not hasattr(libtorch.nn.functional, "scaled_mm"):
        have = f"torch {libtorch.__version__} is older"
    if have:
        raise NoDevice(
            f'{settings.table}.dtype is "fp8", which needs a card of compute capability 9.0 (Hopper) or later and torch'
            f' 2.10 or later; {have}: set dtype = "" for the usual number format'
        )


def load_tokenizer(name: str, folder: Path) -> Any:
    """The fast tokenizer of a model; none of its code is run. Raises UnsupportedModel."""
    _, transformers = libraries()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, use_fast=True, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # many types for broken, absent and foreign files
        raise UnsupportedModel(f"the tokenizer of {name} in {folder} cannot be loaded: {error_line(error)}") from error
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise UnsupportedModel(f"{name} has no fast tokenizer (tokenizer.json): take a model that has one")
    return tokenizer


def load_config(name: str, folder: Path) -> Any:
    """The configuration of a model, without an attention of its own, which may be code at the hub.

    Raises UnsupportedModel.
    """
    _, transformers = libraries()
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        config._attn_implementation = None
    except Exception as error:  # many types for broken, absent and foreign files
        raise UnsupportedModel(f"{name} in {folder} cannot be loaded: {error_line(error)}") from error
    return config


def from_folder(load: Callable[..., Any], name: str, folder: Path, **how: Any) -> tuple[Any, dict[str, Any]]:
    """A model by transformers' `load`, and its report on the tensors; only the folder's safetensors are read.

    Raises UnsupportedModel.
    """
    config = load_config(name, folder)
    try:
        model, report = load(
            folder,
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            **how,
        )
    except Exception as error:  # many types for broken, absent and foreign files
        raise UnsupportedModel(f"{name} in {folder} cannot be loaded: {error_line(error)}") from error
    return model, report


@contextmanager
def fits(name: str, device: torch.device, number_format: str) -> Iterator[None]:
    """Translate a full device, while a model is moved to it, into NoDevice."""
    try:
        with device_errors(on_card=device.type == "cuda"):
            yield
    except OutOfDeviceMemory as error:
        raise NoDevice(
            f"{name} does not fit into the memory of {device} as {number_format}: take a larger card, or a smaller"
            " model"
        ) from error


def refuse_ids_without_rows(name: str, largest_id: int, rows: int) -> None:
    """Raises UnsupportedModel if the tokenizer has an id that the model lacks: on a GPU such an id is fatal."""
    if largest_id >= rows:
        raise UnsupportedModel(
            f"the tokenizer of {name} gives ids up to {largest_id} and the model has rows for {rows}: take the"
            " tokenizer that belongs to it, or resize the model's embeddings"
        )


def refuse_positions(name: str, settings: EngineSettings, positions: int | None) -> None:
    """Raises UnsupportedModel for a model of fewer positions than the tokens of a window."""
    if positions is not None and settings.max_tokens > positions:
        raise UnsupportedModel(f"{name} knows {positions} positions: set {settings.table}.max_tokens to at most that")


def unchanged(load: Callable[[], Loaded], identify: Callable[[], str]) -> Callable[[], Loaded]:
    """`load` for a second time; it raises UnsupportedModel if the files of the models have changed since now."""
    identity = identify()

    def load_again() -> Loaded:
        if identify() != identity:
            raise UnsupportedModel("the files of the models have changed since the start: start this process anew")
        return load()

    return load_again


def error_line(error: BaseException) -> str:
    """The error's type and message, short and on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
