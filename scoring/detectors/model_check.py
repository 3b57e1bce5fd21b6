"""Checks, in a separate process and before loading, whether this machine can run the configured language models.

The process imports torch, which takes half a gigabyte, and `farmwatch up` runs for months. It loads no weights.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from scoring import errors
from scoring.detectors.settings import ModelSettings
from scoring.encoder.model import load_small_files
from scoring.encoder.settings import EncoderSettings
from scoring.engine.loading import device_of, libraries
from scoring.engine.model_folder import weight_files
from scoring.errors import NoDevice, ScoringError
from scoring.pair.models import load_tokenizers
from scoring.pair.settings import PairSettings
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


def refuse_unfit(settings: ModelSettings) -> ModelCheck:
    """Check everything but the weights, in a separate process.

    Raises the errors of loading the models: MissingExtra, UnsupportedModel, NoDevice, …; NoDevice also if the process
    fails.
    """
    told = msgspec.json.encode(settings).decode()
    command = [sys.executable, "-P", "-m", "scoring.detectors.model_check", settings.table, told]
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


def look(settings: ModelSettings) -> ModelCheck:
    """Run the checks in the separate process; returns the findings, or the first fault."""
    try:
        torch, transformers = libraries()
        folders = _load_small_files(settings)
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


def _load_small_files(settings: ModelSettings) -> Sequence[Path]:
    """Configurations and tokenizers of the models in the returned folders. Raises UnsupportedModel, MissingModel."""
    if isinstance(settings, EncoderSettings):
        return [load_small_files(settings).folder]
    folders = settings.folders()
    load_tokenizers(settings, folders)
    return folders


if __name__ == "__main__":
    kind: type[ModelSettings] = EncoderSettings if sys.argv[1] == EncoderSettings.table else PairSettings
    sys.stdout.write(msgspec.json.encode(look(msgspec.json.decode(sys.argv[2], type=kind))).decode())
