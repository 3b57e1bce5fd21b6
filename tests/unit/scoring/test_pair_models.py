"""Which models make a pair, what is refused with which words, and that nothing but their own files is read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scoring.errors import MissingModel, NoDevice, UnsupportedModel
from scoring.pair.model_folder import find_model
from scoring.pair.models import load_models
from tests.support.pairs import Pair, build_pair, build_tokenizer, save_tokenizer, settings_of

pytestmark = pytest.mark.slow


def configure(folder: Path, **changes: Any) -> None:
    """Change a model's config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_pair_is_loaded_from_folders(pairs: dict[str, Pair]) -> None:
    """Both heads have one width, the end of text stands for an absent pad token, the dtype is that of the settings."""
    import torch

    models = load_models(settings_of(pairs["falcon"]))
    assert models.words == 304
    assert models.pad_id == 0
    assert models.observer.head.weight.dtype == torch.float32
    assert not torch.equal(models.observer.head.weight, models.performer.head.weight)
    half = load_models(settings_of(pairs["falcon"], dtype="bfloat16"))
    assert half.observer.head.weight.dtype == torch.bfloat16


def test_missing_folder_is_named(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """A folder that is not there, or has no model in it, is MissingModel with its path."""
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty"):
        pair = Pair(pairs["falcon"].observer, tmp_path / name)
        with pytest.raises(MissingModel, match=str(tmp_path / name)):
            load_models(settings_of(pair))


def test_offline_hub_says_what_to_run(tmp_path: Path) -> None:
    """A hub id that is not in the cache of an offline machine: the model, the cache looked at, the command to run."""
    code = (  # no network is tried, whatever the hub's client is allowed
        "import socket\nsocket.socket.connect = lambda *_: exit('a network')\n"
        "from scoring.pair.model_folder import find_model\n"
        "from scoring.errors import MissingModel\n"
        "try:\n    find_model('tiiuae/falcon-7b', 'main')\n"
        "except MissingModel as error:\n    print(error)\n"
    )
    environment = {"HF_HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        assert "tiiuae/falcon-7b" in line
        assert str(tmp_path / "hub") in line
        assert "hf download tiiuae/falcon-7b --revision main" in line
    assert len(done.stdout.splitlines()) == 1


def test_model_of_the_hubs_cache_is_found(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """A hub id is read from the cache, by its branch or commit, without a network."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    home = tmp_path / "hub" / "models--acme--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    shutil.copytree(pairs["falcon"].observer, home / "snapshots" / commit)
    code = (
        "from scoring.pair.model_folder import find_model\n"
        f"print(find_model('acme/tiny'), find_model('acme/tiny', '{commit}'))"
    )
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(home / "snapshots" / commit)] * 2


@pytest.mark.parametrize("name", ["../up", "a/b/c", "no such:name", "x" * 300])
def test_what_is_no_model_name_is_missing(name: str) -> None:
    """A name that is neither a folder nor a hub id is MissingModel, whatever it looks like."""
    with pytest.raises(MissingModel):
        find_model(name)


def test_incomplete_model_is_missing(copy: Pair) -> None:
    """A large model of which one of several weight files is absent is not loaded with random numbers in its place."""
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}
    (copy.observer / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises((MissingModel, UnsupportedModel), match=r"model-00002|lacks weights"):
        load_models(settings_of(copy))


def test_pickled_weights_are_refused(copy: Pair) -> None:
    """A folder with pytorch_model.bin only is UnsupportedModel, and the file is not opened."""
    (copy.observer / "model.safetensors").rename(copy.observer / "pytorch_model.bin")
    with pytest.raises(UnsupportedModel, match="safetensors"):
        load_models(settings_of(copy))


def test_code_of_a_model_is_not_run(copy: Pair) -> None:
    """A configuration that names code in its folder does not have it run."""
    (copy.observer / "evil.py").write_text("raise SystemExit('run')")
    configure(copy.observer, model_type="evil", auto_map={"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"})
    with pytest.raises(UnsupportedModel):
        load_models(settings_of(copy))


def test_broken_weights_are_refused(copy: Pair) -> None:
    """A truncated weight file is UnsupportedModel with the model's name."""
    path = copy.performer / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UnsupportedModel, match="performer"):
        load_models(settings_of(copy))


def test_absent_tensors_are_refused(copy: Pair) -> None:
    """Weights without one of the model's tensors are refused, where transformers would fill it with random numbers."""
    from safetensors.torch import load_file, save_file

    path = copy.performer / "model.safetensors"
    tensors = load_file(path)
    del tensors["transformer.ln_f.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(UnsupportedModel, match=r"lack transformer\.ln_f\.weight"):
        load_models(settings_of(copy))


def test_different_vocabularies_are_refused(copy: Pair) -> None:
    """Two tokenizers of other tokens are refused, with both names and one token that differs."""
    save_tokenizer(build_tokenizer("falcon", vocab=290), copy.performer)
    with pytest.raises(UnsupportedModel) as caught:
        load_models(settings_of(copy))
    for part in ("observer", "performer", "unknown to the other"):
        assert part in str(caught.value)


def test_tokenizers_that_cut_differently_are_refused(copy: Pair) -> None:
    """One vocabulary with other rules for cutting is refused too: the probes find it."""
    from tokenizers import normalizers

    other = build_tokenizer("falcon")
    other.normalizer = normalizers.Lowercase()
    save_tokenizer(other, copy.performer)
    with pytest.raises(UnsupportedModel, match="differently"):
        load_models(settings_of(copy))


def test_heads_of_different_width_are_refused(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """Models of one tokenizer whose outputs are padded differently are refused with both widths."""
    wider = build_pair(tmp_path, "falcon", head_width=320)
    with pytest.raises(UnsupportedModel, match=r"304 words and .* 320"):
        load_models(settings_of(Pair(pairs["falcon"].observer, wider.performer)))


@pytest.mark.parametrize("short", ["head", "embedding"])
def test_a_tokenizer_with_more_ids_than_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: str
) -> None:
    """A token beyond the rows of the head or the embedding is refused at loading: in a page it would lose the card."""
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
    """max_tokens beyond the model's positions is refused with their number; at it, it is not."""
    pair = build_pair(tmp_path, "gpt2", positions=64)
    load_models(settings_of(pair, max_tokens=64))
    with pytest.raises(UnsupportedModel, match="64 positions"):
        load_models(settings_of(pair, max_tokens=65))


@pytest.mark.parametrize("changed", [lambda x: 30 * (x / 30).tanh(), lambda x: x / 16])
def test_scaled_and_capped_logits_are_refused(
    pairs: dict[str, Pair], monkeypatch: pytest.MonkeyPatch, changed: Callable[[Any], Any]
) -> None:
    """The logits of a probe are compared with the head's: a model that changes them behind it is refused."""
    from transformers import FalconForCausalLM

    forward = FalconForCausalLM.forward

    def capped(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = forward(self, *args, **kwargs)
        output.logits = changed(output.logits)
        return output

    monkeypatch.setattr(FalconForCausalLM, "forward", capped)
    with pytest.raises(UnsupportedModel, match=r"FalconForCausalLM\) changes its logits behind the head"):
        load_models(settings_of(pairs["falcon"]))


def test_absent_card_is_named(pairs: dict[str, Pair]) -> None:
    """device = "cuda:99" where there is no such card is NoDevice, which names the setting."""
    with pytest.raises(NoDevice, match=r"score\.pair\.device is 'cuda:99'"):
        load_models(settings_of(pairs["falcon"], device="cuda:99"))


def test_without_the_extra_it_says_what_to_install() -> None:
    """Where torch is not installed, loading a pair says which command installs it."""
    code = (
        "import sys\nsys.modules['torch'] = None\n"
        "from scoring.pair.detector import load_pair_engine\n"
        "from scoring.pair.settings import PairSettings\n"
        "try:\n    load_pair_engine(PairSettings())\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingExtra")
    assert "pip install 'farmwatch[gpu]'" in done.stdout
