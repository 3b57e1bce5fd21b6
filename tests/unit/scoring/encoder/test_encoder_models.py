"""Classifiers that are refused, with what is wrong, and the checks before loading."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scoring.detectors.model_check import look, refuse_unfit
from scoring.encoder.detector import load_encoder_engine
from scoring.encoder.model import load_encoder
from scoring.encoder.settings import EncoderSettings
from scoring.errors import MissingModel, NoDevice, UnsupportedModel
from scoring.pair.models import load_models
from tests.support.encoders import build_encoder, change_config, settings_of
from tests.support.pages.prose import PROSE
from tests.support.pairs import Pair
from tests.support.pairs import settings_of as pair_settings_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

WEIGHTS = "model.safetensors"


def change_tensors(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the stored tensors."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def pickle_weights(folder: Path) -> None:
    """pytorch_model.bin only."""
    (folder / WEIGHTS).rename(folder / "pytorch_model.bin")


def point_elsewhere(folder: Path) -> None:
    """An index with weights outside of the folder."""
    index = {"metadata": {}, "weight_map": {"classifier.out_proj.bias": "../other.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def be_code(folder: Path) -> None:
    """A model type that only code in the folder knows."""
    (folder / "evil.py").write_text("raise SystemExit('run')")
    auto = {"AutoConfig": "evil.C", "AutoModelForSequenceClassification": "evil.M", "AutoModel": "evil.M"}
    change_config(folder, model_type="evil", auto_map=auto)


def truncate(folder: Path) -> None:
    """The first 1,000 bytes."""
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:1000])


def drop_a_tensor(folder: Path) -> None:
    change_tensors(folder, lambda tensors: tensors.pop("roberta.encoder.layer.1.output.dense.bias"))


def add_a_tensor(folder: Path) -> None:
    change_tensors(folder, lambda tensors: tensors.update({"second_head.weight": tensors["classifier.dense.bias"] + 0}))


def drop_the_head(folder: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        for name in [name for name in tensors if name.startswith("classifier")]:
            del tensors[name]

    change_tensors(folder, change)


def quantise(folder: Path) -> None:
    change_config(folder, quantization_config={"quant_method": "fp8"})


def change_tokenizer(folder: Path, pad_token: str | None) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pad_token": pad_token}))


def drop_the_padding(folder: Path) -> None:
    change_tokenizer(folder, None)


@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (pickle_weights, UnsupportedModel, "pickled ones can run code"),
        (point_elsewhere, UnsupportedModel, r"\.\./other"),
        (be_code, UnsupportedModel, "cannot be loaded"),
        (truncate, UnsupportedModel, "cannot be loaded"),
        (drop_a_tensor, UnsupportedModel, r"layer\.1\.output\.dense\.bias missing \(1 tensor\)"),
        (add_a_tensor, UnsupportedModel, r"second_head\.weight too many \(1 tensor\)"),
        (drop_the_head, UnsupportedModel, r"classifier\.dense\.bias, .* … missing \(4 tensors\)"),
        (lambda folder: change_config(folder, hidden_size=64), UnsupportedModel, "cannot be loaded"),
        (lambda folder: change_config(folder, hidden_size="x"), UnsupportedModel, "cannot be loaded"),
        (quantise, UnsupportedModel, "quantised"),
        (drop_the_padding, UnsupportedModel, "no token for padding"),
        (lambda folder: (folder / "config.json").write_text("{"), UnsupportedModel, "cannot be loaded"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), UnsupportedModel, "tokenizer of"),
        (lambda folder: (folder / "config.json").unlink(), MissingModel, r"config\.json"),
    ],
)
def test_a_folder_that_is_no_classifier_is_refused(
    copy: Path, spoil: Callable[[Path], None], kind: type[Exception], said: str
) -> None:
    """A pickle, code, broken files, missing or additional tensors: each is refused with what is wrong."""
    spoil(copy)
    with pytest.raises(kind, match=said):
        load_encoder(settings_of(copy))


def test_a_language_model_is_no_classifier(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """A model of a pair lacks a classifier and has a head too many."""
    folder = Path(shutil.copytree(pairs["llama"].observer, tmp_path / "llama"))
    change_tokenizer(folder, "</s>")
    with pytest.raises(UnsupportedModel, match=r"score\.weight missing .*lm_head\.weight too many"):
        load_encoder(settings_of(folder, llm_label="LABEL_1"))


def test_code_beside_a_known_model_is_not_run(copy: Path) -> None:
    """The classes are those of transformers, whatever code the configuration names; nor is attention of the hub's."""
    (copy / "evil.py").write_text("raise SystemExit('run')")
    before = load_encoder_engine(settings_of(copy)).read([PROSE])
    auto = {"AutoConfig": "evil.C", "AutoModelForSequenceClassification": "evil.M", "AutoTokenizer": ["evil.T", None]}
    change_config(copy, auto_map=auto, attn_implementation="someone/kernel", _attn_implementation="someone/kernel")
    assert load_encoder_engine(settings_of(copy)).read([PROSE]) == before


def test_a_pooled_classifier_has_one_logit(tmp_path: Path) -> None:
    """A linear layer with two rows behind a backbone under `model.` is refused with its shape."""
    import torch

    folder = build_encoder(tmp_path / "two", "deberta-v2", pooled=True)
    change_tensors(folder, lambda tensors: tensors.update({"classifier.weight": torch.zeros(2, 32)}))
    with pytest.raises(UnsupportedModel, match=r"classifier\.weight of .* is \(2, 32\), and one logit needs \(1, 32\)"):
        load_encoder(settings_of(folder))
    change_tensors(folder, lambda tensors: tensors.pop("model.encoder.LayerNorm.weight"))
    with pytest.raises(UnsupportedModel, match=r"encoder\.LayerNorm\.weight missing"):
        load_encoder(settings_of(folder))


@pytest.mark.parametrize(
    ("labels", "llm_label", "said"),
    [
        (("LABEL_0", "LABEL_1"), "", "to one of LABEL_0, LABEL_1"),
        (("human", "llm"), "machine", "to one of human, llm"),
        (("fake", "ai", "human"), "", "to one of fake, ai, human"),
        (("llm",), "llm", "one logit: unset"),
    ],
)
def test_the_label_of_llm_texts_must_be_known(
    tmp_path: Path, labels: tuple[str, ...], llm_label: str, said: str
) -> None:
    """Labels that do not say which one means an LLM are refused; the message lists them."""
    folder = build_encoder(tmp_path / "labels", "roberta", labels)
    with pytest.raises(UnsupportedModel, match=said):
        load_encoder(settings_of(folder, llm_label=llm_label))


def test_more_tokens_than_positions_are_refused(encoders: dict[tuple[str, bool], Path]) -> None:
    """A table of absolute positions limits max_tokens; relative positions do not, whatever the configuration says."""
    load_encoder(settings_of(encoders["roberta", False], max_tokens=96))
    with pytest.raises(UnsupportedModel, match=r"96 positions: set score\.encoder\.max_tokens"):
        load_encoder(settings_of(encoders["roberta", False], max_tokens=97))
    engine = load_encoder_engine(settings_of(encoders["deberta-v2", True], max_tokens=128))  # says 32
    assert engine.read(["the of and to " * 100])[0][0].tokens == 128  # type: ignore[index]  # it is read


def test_a_tokenizer_with_more_ids_than_rows_is_refused(copy: Path) -> None:
    """A token without a row would lose a GPU, so the folder is refused."""
    path = copy / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["added_tokens"].append(tokenizer["added_tokens"][0] | {"id": 303, "content": "<img>", "special": False})
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(UnsupportedModel, match="ids up to 303 and the model has rows for 303"):
        load_encoder(settings_of(copy))


def test_without_a_model_it_says_what_to_set() -> None:
    """An empty score.encoder.model is not the folder that the process runs in."""
    with pytest.raises(MissingModel, match=r"score\.encoder\.model is not set"):
        load_encoder(EncoderSettings())


def test_without_the_extra_it_says_what_to_install() -> None:
    """Without torch, loading names the extra to install."""
    code = (
        "import sys\nsys.modules['torch'] = None\n"
        "from scoring.encoder.detector import load_encoder_engine\n"
        "from scoring.encoder.settings import EncoderSettings\n"
        "try:\n    load_encoder_engine(EncoderSettings())\n"
        "except Exception as error:\n    print(type(error).__name__, error.facts)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "MissingExtra {'extra': 'gpu'}\n"


def test_the_check_needs_no_weights(copy: Path) -> None:
    """In a process of its own: libraries, device and size of the weights; or the fault of the small files."""
    found = refuse_unfit(settings_of(copy))
    assert (found.device, found.weight_bytes) == ("cpu", (copy / WEIGHTS).stat().st_size)
    assert look(settings_of(copy, device="cuda:99")).error == NoDevice.__name__
    change_config(copy, id2label={"0": "a", "1": "b"})
    with pytest.raises(UnsupportedModel, match="to one of a, b"):
        refuse_unfit(settings_of(copy))


def test_the_configuration_of_a_pair_cannot_name_code_either(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """Attention that a configuration of a pair names at the hub is not fetched."""
    folder = Path(shutil.copytree(pairs["llama"].observer, tmp_path / "observer"))
    change_config(folder, attn_implementation="someone/kernel")
    load_models(pair_settings_of(Pair(folder, pairs["llama"].performer)))
