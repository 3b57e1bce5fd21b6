"""A pair is looked at before it is loaded: libraries, tokenizers, device, sizes; what is wrong has its own class."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from scoring.errors import DifferentTokenizers, MissingModel, NoDevice
from scoring.pair import check as pair_check
from scoring.pair.check import PairCheck, look, refuse_unfit_pair
from scoring.pair.settings import PairSettings
from tests.support.pairs import Pair

pytestmark = pytest.mark.slow


def settings_of(pair: Pair, **more: str) -> PairSettings:
    """The pair on the CPU, unless told otherwise."""
    chosen = {"observer": str(pair.observer), "performer": str(pair.performer), "device": "cpu", **more}
    return msgspec.convert(chosen, PairSettings)


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


def test_two_tokenizers_are_told_without_loading_weights(pairs: dict[str, Pair]) -> None:
    """Models of two families: the error is the one that loading would raise."""
    found = look(settings_of(Pair(pairs["gpt2"].observer, pairs["llama"].performer)))
    assert found.error == DifferentTokenizers.__name__
    assert "vocabular" in found.message or "differently" in found.message


def test_a_card_that_is_not_there_is_told(pairs: dict[str, Pair]) -> None:
    """The device of the configuration is looked for, not just any."""
    found = look(settings_of(pairs["gpt2"], device="cuda:99"))
    assert found.error == NoDevice.__name__
    assert "cuda:99" in found.message


@pytest.mark.parametrize("kind", [MissingModel, NoDevice])
def test_what_was_found_wrong_is_raised_as_its_own_class(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one who asks gets the error with its message, as if the models had been loaded here."""
    monkeypatch.setattr(pair_check, "check_pair", lambda _: PairCheck(error=kind.__name__, message="what to do"))
    with pytest.raises(kind, match="what to do"):
        refuse_unfit_pair(PairSettings())


def test_a_process_that_dies_is_a_fault_of_the_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A driver that kills whoever asks it must not look like a fit pair; the last line that it wrote is told."""
    dies = tmp_path / "python"
    dies.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(dies))
    for script, told in (
        ("exit 139", r"ended with 139\).*nvidia-smi"),
        ("printf 'Traceback\\nOSError: libcuda.so: \\033[1mtoo old\\n\\n' >&2; exit 1", r"libcuda\.so:  \[1mtoo old\)"),
    ):
        dies.write_text(f"#!/bin/sh\n{script}\n")
        with pytest.raises(NoDevice, match=told):
            refuse_unfit_pair(PairSettings())
