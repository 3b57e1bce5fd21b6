"""Checks, in a separate process and before loading, whether this machine can run the configured pair.

`python -m scoring.pair.check SETTINGS`, with the settings as JSON, prints a `PairCheck` as JSON. It checks the
libraries, both tokenizers, the device and its free memory, without loading weights. It is a separate process because
importing torch takes half a gigabyte, and `farmwatch up` runs for months.
"""

from __future__ import annotations

import subprocess
import sys

import msgspec

from scoring import errors
from scoring.errors import NoDevice, ScoringError
from scoring.pair.model_folder import weight_files
from scoring.pair.settings import PairSettings
from stream.text.user_errors import MissingExtra
from stream.text.wording import one_line

PATIENCE_S = 120.0  # a cold import of torch from a slow disk


class PairCheck(msgspec.Struct, frozen=True):
    """The findings. `error` is the name of a class of scoring.errors, `message` its text; "" = the pair can run."""

    libraries: str = ""  # with their versions
    device: str = ""  # name of the card, or "cpu"
    free_bytes: int = 0  # of a GPU's memory at present; 0 for a CPU
    weight_bytes: int = 0  # of both models, as stored
    error: str = ""
    message: str = ""
    facts: dict[str, str] = {}  # of the error


def refuse_unfit_pair(settings: PairSettings) -> PairCheck:
    """Check everything but the weights, in a separate process.

    Raises the errors of loading the models: MissingExtra, UnsupportedModel, NoDevice, …; NoDevice also if the process
    fails.
    """
    command = [sys.executable, "-P", "-m", "scoring.pair.check", msgspec.json.encode(settings).decode()]
    why = ""
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
        why = one_line(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])[:300]
        why = why or f"it ended with {done.returncode}"
        check = msgspec.json.decode(done.stdout, type=PairCheck)
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        why = why or str(error)
        raise NoDevice(f"the device could not be checked ({why}): try `nvidia-smi`, and repair the driver") from error
    if check.error:
        raise getattr(errors, check.error, MissingExtra)(check.message, **check.facts)
    return check


def look(settings: PairSettings) -> PairCheck:
    """Run the checks in the separate process; returns the findings, or the first fault."""
    try:
        from scoring.pair.models import device_named, libraries, load_tokenizers

        torch, transformers = libraries()
        folders = settings.folders()
        load_tokenizers(transformers, settings, folders)
        device = device_named(settings.device, torch)
        on_card = device.type == "cuda"
        return PairCheck(
            libraries=f"torch {torch.__version__}, transformers {transformers.__version__}",
            device=torch.cuda.get_device_name(device) if on_card else "cpu",
            free_bytes=torch.cuda.mem_get_info(device)[0] if on_card else 0,
            weight_bytes=sum(path.stat().st_size for folder in folders for path in weight_files(folder)),
        )
    except (ScoringError, MissingExtra) as error:
        facts = {name: str(fact) for name, fact in error.facts.items()}
        return PairCheck(error=type(error).__name__, message=str(error), facts=facts)


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(look(msgspec.json.decode(sys.argv[1], type=PairSettings))).decode())
