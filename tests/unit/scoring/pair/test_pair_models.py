"""Valid pairs of models; refused pairs, also before loading; only the named files are read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scoring.detectors.model_check import ModelCheck, look, refuse_unfit
from scoring.engine.model_folder import find_model
from scoring.errors import MissingModel, NoDevice, UnsupportedModel
from scoring.pair.models import load_models
from scoring.pair.settings import PairSettings
from tests.support.pairs import Pair, build_pair, build_tokenizer, save_tokenizer, settings_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]


def test_pair_is_loaded_from_folders(pairs: dict[str, Pair]) -> None:
    """Both heads have one width, the end of text replaces a missing pad token, and the dtype is the configured one."""
    import torch

    models = load_models(settings_of(pairs["falcon"]))
    assert models.words == 304
    assert models.pad_id == 0
    assert models.observer.head.weight.dtype == torch.float32
    assert not torch.equal(models.observer.head.weight, models.performer.head.weight)
    half = load_models(settings_of(pairs["falcon"], dtype="bfloat16"))
    assert half.observer.head.weight.dtype == torch.bfloat16


def test_missing_folder_is_named(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """A missing folder, or one without a model, is MissingModel with its path."""
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty"):
        pair = Pair(pairs["falcon"].observer, tmp_path / name)
        with pytest.raises(MissingModel, match=str(tmp_path / name)):
            load_models(settings_of(pair))


def test_offline_hub_says_what_to_run(tmp_path: Path) -> None:
    """For a hub id outside the cache, the error has the model, the cache and the command to run."""
    code = (  # no network access, whatever the hub's client allows
        "import socket\nsocket.socket.connect = lambda *_: exit('a network')\n"
        "from scoring.engine.model_folder import find_model\n"
        "from scoring.errors import MissingModel\n"
        "for name in ('tiiuae/falcon-7b', 'a b'):\n"
        "    try:\n        find_model(name, 'main')\n    except MissingModel as error:\n        print(error)\n"
    )
    environment = {"HF_HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    missing, no_id = done.stdout.splitlines()
    assert "the model tiiuae/falcon-7b" in missing and str(tmp_path / "hub") in missing
    assert no_id == "'a b' is neither a model folder on this machine nor a hub id"


def test_model_of_the_hubs_cache_is_found(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """A hub id is read from the cache, by its branch or commit, without a network."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    home = tmp_path / "hub" / "models--acme--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    shutil.copytree(pairs["falcon"].observer, home / "snapshots" / commit)
    code = (
        "from scoring.engine.model_folder import find_model\n"
        f"print(find_model('acme/tiny'), find_model('acme/tiny', '{commit}'))"
    )
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(home / "snapshots" / commit)] * 2


@pytest.mark.parametrize("name", ["../up", "a/b/c", "no such:name", "x" * 300])
def test_what_is_no_model_name_is_missing(name: str) -> None:
    """Any name that is neither a folder nor a hub id is MissingModel."""
    with pytest.raises(MissingModel):
        find_model(name)


def leave_weights_out(pair: Pair) -> None:
    """An index that names a missing file."""
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}
    (pair.observer / "model.safetensors.index.json").write_text(json.dumps(index))


def pickle_weights(pair: Pair) -> None:
    """pytorch_model.bin only."""
    (pair.observer / "model.safetensors").rename(pair.observer / "pytorch_model.bin")


def add_code(pair: Pair) -> None:
    """A configuration that names code in its folder."""
    (pair.observer / "evil.py").write_text("raise SystemExit('run')")
    config = pair.observer / "config.json"
    evil = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}}
    config.write_text(json.dumps(json.loads(config.read_text()) | evil))


def truncate_weights(pair: Pair) -> None:
    """The first 1,000 bytes."""
    path = pair.performer / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def drop_a_tensor(pair: Pair) -> None:
    """Without a tensor, transformers would use random numbers."""
    from safetensors.torch import load_file, save_file

    path = pair.performer / "model.safetensors"
    tensors = load_file(path)
    del tensors["transformer.ln_f.weight"]
    save_file(tensors, path, metadata={"format": "pt"})


def change_vocabulary(pair: Pair) -> None:
    """Other tokens."""
    save_tokenizer(build_tokenizer("falcon", vocab=290), pair.performer)


def change_cuts(pair: Pair) -> None:
    """The same tokens with other splitting rules, which the probes find."""
    from tokenizers import normalizers

    other = build_tokenizer("falcon")
    other.normalizer = normalizers.Lowercase()
    save_tokenizer(other, pair.performer)


@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (leave_weights_out, MissingModel, "model-00002"),
        (pickle_weights, UnsupportedModel, "pickled ones can run code"),
        (add_code, UnsupportedModel, "observer"),
        (truncate_weights, UnsupportedModel, "performer"),
        (drop_a_tensor, UnsupportedModel, r"lack transformer\.ln_f\.weight"),
        (change_vocabulary, UnsupportedModel, "observer and .*performer have different .*unknown to the other"),
        (change_cuts, UnsupportedModel, "differently"),
    ],
)
def test_a_model_that_would_give_wrong_numbers_is_refused(
    copy: Pair, spoil: Callable[[Pair], None], kind: type[Exception], said: str
) -> None:
    """A folder with missing tensors, a pickle, code, or another tokenizer is refused."""
    spoil(copy)
    with pytest.raises(kind, match=said):
        load_models(settings_of(copy))


def test_heads_of_different_width_are_refused(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """Models of one tokenizer with differently padded outputs are refused, with both widths."""
    wider = build_pair(tmp_path, "falcon", head_width=320)
    with pytest.raises(UnsupportedModel, match=r"304 words and .* 320"):
        load_models(settings_of(Pair(pairs["falcon"].observer, wider.performer)))


@pytest.mark.parametrize("short", ["head", "embedding"])
def test_a_tokenizer_with_more_ids_than_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: str
) -> None:
    """A token beyond the rows of the head or the embedding is refused at loading: in a page it would lose the GPU."""
    import torch
    from tokenizers import AddedToken
    from transformers import FalconForCausalLM

    pair = build_pair(tmp_path, "falcon", head_width=304)
    tokenizer = build_tokenizer("falcon")
    tokenizer.add_tokens([AddedToken(f"<img{number}>") for number in range(4 if short == "embedding" else 10)])
    for folder in pair:
        save_tokenizer(tokenizer, folder)
    if short == "embedding":
        load_models(settings_of(pair))  # 303 is its last row
        monkeypatch.setattr(FalconForCausalLM, "get_input_embeddings", lambda _: torch.nn.Embedding(303, 2))
    last, rows = (303, 303) if short == "embedding" else (309, 304)
    with pytest.raises(UnsupportedModel, match=f"ids up to {last} and the model has rows for {rows}"):
        load_models(settings_of(pair))


def test_more_tokens_than_positions_are_refused(tmp_path: Path) -> None:
    """max_tokens beyond the model's positions is refused with their number."""
    pair = build_pair(tmp_path, "gpt2", positions=64)
    load_models(settings_of(pair, max_tokens=64))
    with pytest.raises(UnsupportedModel, match="64 positions"):
        load_models(settings_of(pair, max_tokens=65))


@pytest.mark.parametrize("changed", [lambda x: 30 * (x / 30).tanh(), lambda x: x / 16])
def test_scaled_and_capped_logits_are_refused(
    pairs: dict[str, Pair], monkeypatch: pytest.MonkeyPatch, changed: Callable[[Any], Any]
) -> None:
    """A model that changes its logits after the head is refused: a probe compares them with the head's."""
    from transformers import FalconForCausalLM

    forward = FalconForCausalLM.forward

    def capped(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = forward(self, *args, **kwargs)
        output.logits = changed(output.logits)
        return output

    monkeypatch.setattr(FalconForCausalLM, "forward", capped)
    with pytest.raises(UnsupportedModel, match=r"FalconForCausalLM\) changes its logits behind the head"):
        load_models(settings_of(pairs["falcon"]))


def test_without_the_extra_it_says_what_to_install() -> None:
    """Without torch, loading a pair names the extra to install."""
    code = (
        "import sys\nsys.modules['torch'] = None\n"
        "from scoring.pair.detector import load_pair_engine\n"
        "from scoring.pair.settings import PairSettings\n"
        "try:\n    load_pair_engine(PairSettings())\n"
        "except Exception as error:\n    print(type(error).__name__, error.facts)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "MissingExtra {'extra': 'gpu'}\n"


def test_a_fit_pair_is_found_fit_in_a_process_of_its_own(pairs: dict[str, Pair]) -> None:
    """A check of a pair returns versions, device and size of the weights, without torch in this process."""
    code = (
        "import sys, msgspec\n"
        "from scoring.detectors.model_check import refuse_unfit\n"
        "from scoring.pair.settings import PairSettings\n"
        "found = refuse_unfit(msgspec.json.decode(sys.argv[1], type=PairSettings))\n"
        "assert 'torch' not in sys.modules\n"
        "sys.stdout.write(msgspec.json.encode(found).decode())\n"
    )
    told = msgspec.json.encode(settings_of(pairs["gpt2"])).decode()
    done = subprocess.run([sys.executable, "-c", code, told], capture_output=True, text=True, check=True, timeout=120)
    found = msgspec.json.decode(done.stdout, type=ModelCheck)
    weights = sum(path.stat().st_size for folder in pairs["gpt2"] for path in folder.glob("*.safetensors"))
    assert (found.device, found.weight_bytes, found.error) == ("cpu", weights, "")
    assert found.libraries.startswith("torch ")


def test_faults_are_found_without_loading_weights(pairs: dict[str, Pair]) -> None:
    """Models of two families and a missing GPU are found without loading weights."""
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
    """Errors of loading keep their class; a dead process is an error of the device, with its last line of output."""
    python = tmp_path / "python"
    python.touch(0o755)
    python.write_text(f"#!/bin/sh\n{script}\n")
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(kind, match=said):
        refuse_unfit(PairSettings())
