"""A pair is looked at before it is loaded: libraries, tokenizers, device, sizes; what is wrong has its own class."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from scoring.errors import MissingModel, NoDevice, UnsupportedModel
from scoring.pair.check import PairCheck, look, refuse_unfit_pair
from scoring.pair.settings import PairSettings
from tests.support.pairs import Pair, settings_of

pytestmark = pytest.mark.slow


def test_a_fit_pair_is_found_fit_in_a_process_of_its_own(pairs: dict[str, Pair]) -> None:
    """Versions, device and the size of the weights come back; this process has not imported torch for it."""
    code = (
        "import sys, msgspec\n"
        "from scoring.pair.check import refuse_unfit_pair\n"
        "from scoring.pair.settings import PairSettings\n"
        "found = refuse_unfit_pair(msgspec.json.decode(sys.argv[1], type=PairSettings))\n"
        "assert 'torch' not in sys.modules\n"
        "sys.stdout.write(msgspec.json.encode(found).decode())\n"
    )
    told = msgspec.json.encode(settings_of(pairs["gpt2"])).decode()
    done = subprocess.run([sys.executable, "-c", code, told], capture_output=True, text=True, check=True, timeout=120)
    found = msgspec.json.decode(done.stdout, type=PairCheck)
    weights = sum(path.stat().st_size for folder in pairs["gpt2"] for path in folder.glob("*.safetensors"))
    assert (found.device, found.weight_bytes, found.error) == ("cpu", weights, "")
    assert found.libraries.startswith("torch ")


def test_faults_are_found_without_loading_weights(pairs: dict[str, Pair]) -> None:
    """Models of two families, and a card that is not there."""
    found = look(settings_of(Pair(pairs["gpt2"].observer, pairs["llama"].performer)))
    assert found.error == UnsupportedModel.__name__
    found = look(settings_of(pairs["gpt2"], device="cuda:99"))
    assert found.error == NoDevice.__name__ and "score.pair.device is 'cuda:99'" in found.message


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("""echo '{"error": "MissingModel", "message": "what to do"}'""", MissingModel, "what to do"),
        ("exit 139", NoDevice, r"ended with 139\).*nvidia-smi"),
        ("printf 'Traceback\\nOSError: \\033[1mtoo old\\n\\n' >&2; exit 1", NoDevice, r"OSError:  \[1mtoo old\)"),
    ],
)
def test_faults_are_raised_as_their_own_class(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, kind: type[Exception], said: str
) -> None:
    """What loading would raise is raised; a process that dies is a fault of the device, with the last line it wrote."""
    python = tmp_path / "python"
    python.touch(0o755)
    python.write_text(f"#!/bin/sh\n{script}\n")
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(kind, match=said):
        refuse_unfit_pair(PairSettings())
