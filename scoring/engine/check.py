"""Checks, in a separate process and before loading, whether this machine can run the models of a detector.

The process imports torch, which takes half a gigabyte, and `farmwatch up` runs for months. It loads no weights.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from scoring import errors
from scoring.engine.model_folder import weight_files
from scoring.engine.settings import EngineSettings
from scoring.errors import NoDevice, ScoringError
from stream.text.user_errors import MissingExtra
from stream.text.wording import one_line

PATIENCE_S = 120.0  # a cold import of torch from a slow disk


class ModelCheck(msgspec.Struct, frozen=True):
    """The findings. `error` is the name of a class of scoring.errors, `message` its text; "" = the models can run."""

    libraries: str = ""  # with their versions
    device: str = ""  # name of the card, or "cpu"
    free_bytes: int = 0  # of a GPU's memory at present; 0 for a CPU
    weight_bytes: int = 0  # of all models, as stored
    error: str = ""
    message: str = ""
    facts: dict[str, str] = {}  # of the error


def refuse_unfit(module: str, settings: EngineSettings) -> ModelCheck:
    """Run `python -m MODULE SETTINGS`, the settings as JSON, which prints a ModelCheck as JSON.

    Raises the errors of loading the models: MissingExtra, UnsupportedModel, NoDevice, …; NoDevice also if the process
    fails.
    """
    command = [sys.executable, "-P", "-m", module, msgspec.json.encode(settings).decode()]
    why = ""
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
        why = one_line(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])[:300]
        why = why or f"it ended with {done.returncode}"
        check = msgspec.json.decode(done.stdout, type=ModelCheck)
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        why = why or str(error)
        raise NoDevice(f"the device could not be checked ({why}): try `nvidia-smi`, and repair the driver") from error
    if check.error:
        raise getattr(errors, check.error, MissingExtra)(check.message, **check.facts)
    return check


def look_at(settings: EngineSettings, load_small_files: Callable[[], Sequence[Path]]) -> ModelCheck:
    """Run the checks in the separate process; `load_small_files` checks all but weights, and returns the folders."""
    try:
        from scoring.engine.loading import device_of, libraries

        torch, transformers = libraries()
        folders = load_small_files()
        device = device_of(settings, torch)
        on_card = device.type == "cuda"
        return ModelCheck(
            libraries=f"torch {torch.__version__}, transformers {transformers.__version__}",
            device=torch.cuda.get_device_name(device) if on_card else "cpu",
            free_bytes=torch.cuda.mem_get_info(device)[0] if on_card else 0,
            weight_bytes=sum(path.stat().st_size for folder in folders for path in weight_files(folder)),
        )
    except (ScoringError, MissingExtra) as error:
        facts = {name: str(fact) for name, fact in error.facts.items()}
        return ModelCheck(error=type(error).__name__, message=str(error), facts=facts)


def tell(check: ModelCheck) -> None:
    """Print the findings for `refuse_unfit`."""
    sys.stdout.write(msgspec.json.encode(check).decode())
