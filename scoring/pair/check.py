"""Can this machine run the configured pair? Asked before anything is loaded, in a process of its own.

`python -m scoring.pair.check SETTINGS`, the settings as JSON, prints a `PairCheck` as JSON. It looks at the libraries,
at both tokenizers, at the device and at its free memory; no weights are loaded. In a process of its own because torch
takes half a gigabyte of whoever imports it, and `farmwatch up` lives for months.
"""

from __future__ import annotations

import subprocess
import sys

import msgspec

from scoring import errors
from scoring.errors import NoDevice, ScoringError
from scoring.pair.model_folder import find_model, weight_files
from scoring.pair.settings import PairSettings

PATIENCE_S = 120.0  # a cold import of torch from a slow disk


class PairCheck(msgspec.Struct, frozen=True):
    """What was found. `error` is the name of a class of scoring.errors, `message` its text; "" = the pair can run."""

    libraries: str = ""  # with their versions
    device: str = ""  # name of the card, or "cpu"
    free_bytes: int = 0  # of a card's memory, as it is now; 0 for a CPU
    weight_bytes: int = 0  # of both models, as they are stored
    error: str = ""
    message: str = ""


def check_pair(settings: PairSettings) -> PairCheck:
    """Look at everything but the weights, in a process of its own. Raises NoDevice where that process fails."""
    told = msgspec.json.encode(settings).decode()
    command = [sys.executable, "-m", "scoring.pair.check", told]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoDevice(f"the device could not be looked at ({error}): try `nvidia-smi`, and mend the driver") from error
    try:
        return msgspec.json.decode(done.stdout, type=PairCheck)
    except msgspec.DecodeError as error:
        lines = done.stderr.decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), f"it ended with {done.returncode}")
        said = "".join(char if char.isprintable() else " " for char in last).strip()[:300]
        raise NoDevice(f"the device could not be looked at ({said}): try `nvidia-smi`, and mend the driver") from error


def refuse_unfit_pair(settings: PairSettings) -> PairCheck:
    """As `check_pair`. Raises what loading the models would raise: MissingExtra, DifferentTokenizers, NoDevice, …"""
    found = check_pair(settings)
    if found.error:
        kind = getattr(errors, found.error, ScoringError)
        raise kind(found.message)
    return found


def look(settings: PairSettings) -> PairCheck:
    """In the process of its own: what there is, up to the first thing that is wrong."""
    found = PairCheck()
    try:
        from scoring.pair.models import check_tokenizers, device_named, libraries, load_tokenizer

        torch, transformers = libraries()
        versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
        found = msgspec.structs.replace(found, libraries=versions)
        folders = [
            find_model(settings.observer, settings.observer_revision),
            find_model(settings.performer, settings.performer_revision),
        ]
        weights = sum(path.stat().st_size for folder in folders for path in weight_files(folder))
        found = msgspec.structs.replace(found, weight_bytes=weights)
        names = (settings.observer, settings.performer)
        cutters = [load_tokenizer(transformers, name, folder) for name, folder in zip(names, folders, strict=True)]
        check_tokenizers(*names, *(tokenizer.backend_tokenizer for tokenizer in cutters))
        device = device_named(settings.device, torch)
        if device.type != "cuda":
            return msgspec.structs.replace(found, device="cpu")
        free, _total = torch.cuda.mem_get_info(device)
        return msgspec.structs.replace(found, device=torch.cuda.get_device_name(device), free_bytes=free)
    except ScoringError as error:
        return msgspec.structs.replace(found, error=type(error).__name__, message=str(error))


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(look(msgspec.json.decode(sys.argv[1], type=PairSettings))).decode())
