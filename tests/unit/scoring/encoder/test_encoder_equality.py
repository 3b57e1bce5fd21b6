"""The encoder's logits against plain transformers: layouts, labels, windows, batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.encoder.detector import load_encoder_engine
from scoring.encoder.settings import EncoderSettings
from scoring.interface import TextScore
from tests.support.encoders import BACKBONES, build_encoder, settings_of
from tests.support.pages.prose import PROSE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

TEXTS = (PROSE, "A short one, with 漢字.", "the of and to " * 60, "No. " * 9, PROSE[::-1])


def logits_of(settings: EncoderSettings, texts: Any = TEXTS) -> list[float]:
    """By the engine; all texts are read."""
    found = load_encoder_engine(settings).read(texts)
    assert not any(isinstance(result, TextScore | Exception) for result in found)
    return [np.average([of.logit for of in windows], weights=[of.tokens for of in windows]) for windows in found]  # type: ignore[union-attr]  # asserted


def plain_logits(settings: EncoderSettings, texts: Any = TEXTS) -> list[list[float]]:
    """By transformers, window by window without padding: the logits of each text, means weighted by tokens."""
    import torch
    import transformers
    from safetensors.torch import load_file

    folder, kinds = Path(settings.model), vars(transformers)
    tokenizer = kinds["AutoTokenizer"].from_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    pooled = all(name.startswith(("model.", "classifier.")) for name in tensors)
    if pooled:
        body = kinds["AutoModel"].from_config(kinds["AutoConfig"].from_pretrained(folder)).eval()
        body.load_state_dict({name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model.")})
    else:
        model = kinds["AutoModelForSequenceClassification"].from_pretrained(folder).eval()
    logits = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False).input_ids
        room = settings.max_tokens - 2
        windows = [ids[start : start + room] for start in range(0, len(ids), room)][: settings.windows]
        whole = [[tokenizer.cls_token_id, *window, tokenizer.sep_token_id] for window in windows]
        with torch.inference_mode():
            if pooled:
                states = [body(input_ids=torch.tensor([window])).last_hidden_state[0] for window in whole]
                of = [tensors["classifier.weight"] @ x.mean(0) + tensors["classifier.bias"] for x in states]
            else:
                of = [model(input_ids=torch.tensor([window])).logits[0] for window in whole]
        logits.append(np.average([x.double().numpy() for x in of], axis=0, weights=[len(x) for x in whole]).tolist())
    return logits


@pytest.mark.parametrize("windows", [1, 3])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_the_pooled_layout_is_the_linear_of_the_masked_mean(
    encoders: dict[tuple[str, bool], Path], backbone: str, windows: int
) -> None:
    """A backbone with mean pooling and a linear classifier gives its logit, to 1e-5."""
    settings = settings_of(encoders[backbone, True], windows=windows)
    assert logits_of(settings) == pytest.approx([one for (one,) in plain_logits(settings)], abs=1e-5)


@pytest.mark.parametrize("windows", [1, 3])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_two_labels_give_the_difference_of_their_logits(
    encoders: dict[tuple[str, bool], Path], backbone: str, windows: int
) -> None:
    """The label of LLM texts that the configuration names, less the other one, to 1e-5; llm_label may turn it."""
    settings = settings_of(encoders[backbone, False], windows=windows)
    expected = [llm - human for human, llm in plain_logits(settings)]
    assert logits_of(settings) == pytest.approx(expected, abs=1e-5)
    turned = settings_of(encoders[backbone, False], windows=windows, llm_label="Human")
    assert logits_of(turned) == pytest.approx([-one for one in expected], abs=1e-5)


def test_one_label_gives_its_logit(tmp_path: Path) -> None:
    """A classifier of one logit gives it as it is."""
    settings = settings_of(build_encoder(tmp_path / "one", "deberta-v2", ("llm",)))
    assert logits_of(settings) == pytest.approx([one for (one,) in plain_logits(settings)], abs=1e-5)


def test_among_more_labels_the_named_one_stands_against_the_rest(tmp_path: Path) -> None:
    """The logit of the named label, less the logarithm of the sum of the others' exponentials."""
    settings = settings_of(build_encoder(tmp_path / "three", "roberta", ("human", "mixed", "written by AI")))
    settings = settings_of(Path(settings.model), llm_label="written by ai")
    expected = [third - np.logaddexp(first, second) for first, second, third in plain_logits(settings)]
    assert logits_of(settings) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("pooled", [True, False])
def test_a_text_has_the_same_logit_in_any_batch(
    encoders: dict[tuple[str, bool], Path], backbone: str, pooled: bool
) -> None:
    """Alone, among longer texts or in another order, a text's logit differs by less than 1e-5."""
    engine = load_encoder_engine(settings_of(encoders[backbone, pooled]))
    alone = [engine.read([text])[0][0].logit for text in TEXTS]  # type: ignore[index]  # all are read
    for texts in (TEXTS, TEXTS[::-1], [*TEXTS] * 3):
        together = [result[0].logit for result in engine.read(texts)]  # type: ignore[index]
        assert together == pytest.approx([alone[TEXTS.index(text)] for text in texts], abs=1e-5)


def test_a_decoder_classifies_by_the_last_token_of_each_text(tmp_path: Path) -> None:
    """A decoder whose configuration has no padding token takes the tokenizer's: no logit comes from the padding."""
    settings = settings_of(build_encoder(tmp_path / "llama", "llama"))
    assert logits_of(settings) == pytest.approx([llm - human for human, llm in plain_logits(settings)], abs=1e-5)


def test_windows_hold_the_text_once_and_end(encoders: dict[tuple[str, bool], Path]) -> None:
    """The windows do not overlap, have special tokens each, and are at most `windows`; a short last one is left out."""
    text = "the of and to " * 100
    read = {}
    for windows, shortest in ((1, 2), (2, 2), (50, 2), (50, 64)):
        settings = settings_of(encoders["roberta", True], windows=windows, min_tokens=shortest)
        (found,) = load_encoder_engine(settings).read([text])
        read[windows, shortest] = [window.tokens for window in found]  # type: ignore[union-attr]  # it is read
    from transformers import AutoTokenizer

    plain: Any = AutoTokenizer
    own = len(plain.from_pretrained(encoders["roberta", True])(text, add_special_tokens=False).input_ids)
    rest = own % 62
    assert (read[1, 2], read[2, 2]) == ([64], [64] * 2)
    assert rest and read[50, 2] == [64] * (own // 62) + [rest + 2]
    assert read[50, 64] == [64] * (own // 62)


@pytest.mark.parametrize("tokens", [8, 64, 65, 130])
def test_attention_in_blocks_is_that_of_transformers(
    encoders: dict[tuple[str, bool], Path], monkeypatch: pytest.MonkeyPatch, tokens: int
) -> None:
    """DeBERTa's attention by blocks of positions and of heads, in batches with padding, gives the logits to 1e-5."""
    from scoring.encoder import disentangled

    monkeypatch.setattr(disentangled, "PIECE", 2 * tokens**2)  # two of the four heads at a time
    settings = settings_of(encoders["deberta-v2", False], max_tokens=tokens)
    texts = [*TEXTS, "the of and to " * 20 + "a", "the of and to " * 20]
    assert logits_of(settings, texts) == pytest.approx([b - a for a, b in plain_logits(settings, texts)], abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "layers"), [({}, 2), ({"pos_att_type": ["c2p"]}, 0), ({"share_att_key": False}, 0)]
)
def test_only_the_attention_that_is_known_is_replaced(
    encoders: dict[tuple[str, bool], Path], changes: dict[str, Any], layers: int
) -> None:
    """Both terms of distance, by shared projections: another DeBERTa stays as transformers has it."""
    import transformers

    from scoring.encoder.disentangled import speed_up_attention

    kinds = vars(transformers)
    config = kinds["AutoConfig"].from_pretrained(encoders["deberta-v2", True], **changes)
    assert speed_up_attention(kinds["AutoModel"].from_config(config)) == layers
