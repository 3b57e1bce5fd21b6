"""Both scores equal an independent float64 implementation, in any batch and any order.

The reference is written from the definitions of Binoculars (arXiv 2401.12070) and Fast-DetectGPT (arXiv 2310.05130) and
shares no code with the package: one document at a time, two full logit tensors, whole softmaxes.

In float32, with tiny random pairs, the limit is 2e-5 against the reference (of many drawn texts the worst came to
1.001e-5) and 1e-6 between two batches of one text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scoring.interface import TextScore
from scoring.pair.models import PairModels, load_models
from scoring.pair.scores import PairReading
from tests.support.lazily import Lazily
from tests.support.pairs import ARCHITECTURES, Pair, settings_of
from tests.support.sizes import LONG

if TYPE_CHECKING:
    import torch

    from scoring.pair import engine as engines
else:
    torch, engines = Lazily("torch"), Lazily("scoring.pair.engine")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("needs_torch")]

LIMIT, BETWEEN_BATCHES = 2e-5, 1e-6
WORDS = 304


class NaiveScores(NamedTuple):
    binoculars: float
    fast_detectgpt: float
    ppl: float
    x_ppl: float


class NaivePair:
    """Observer p and performer q in float64."""

    def __init__(self, observer: Path, performer: Path, pad_id: int = -1) -> None:
        import transformers

        load: Any = transformers.AutoModelForCausalLM.from_pretrained
        self.observer = load(observer, dtype=torch.float64).eval()
        self.performer = load(performer, dtype=torch.float64).eval()
        self.pad_id = pad_id

    def score(self, ids: Sequence[int]) -> NaiveScores:
        """Scores of a document of at least two tokens."""
        tokens = torch.tensor([list(ids)])
        with torch.no_grad():
            p = torch.softmax(self.observer(input_ids=tokens).logits[0].double(), dim=-1)
            log_q = torch.log_softmax(self.performer(input_ids=tokens).logits[0].double(), dim=-1)
        following = tokens[0, 1:]
        log_likelihood = log_q[:-1][torch.arange(len(following)), following]
        ppl = -log_likelihood.mean()
        cross_entropy = -(p * log_q).sum(dim=-1)
        x_ppl = cross_entropy[tokens[0] != self.pad_id].mean()
        mu = (p * log_q).sum(dim=-1)[:-1]
        var = (p * log_q.square()).sum(dim=-1)[:-1] - mu.square()
        fast_detectgpt = (log_likelihood - mu).sum() / var.sum().sqrt()
        return NaiveScores(*(float(x) for x in (ppl / x_ppl, fast_detectgpt, ppl, x_ppl)))


Loaded = dict[str, tuple[Pair, PairModels, NaivePair]]  # of each architecture: folders, models and reference

# without 0 and 1, the pad tokens, which have their own test
documents = st.lists(
    st.builds(
        lambda seed, length: [random.Random(seed).randrange(2, WORDS) for _ in range(length)],
        st.integers(0, 1000),
        st.one_of(st.integers(2, 9), st.integers(2, 150)),
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture(scope="module")
def loaded(pairs: dict[str, Pair]) -> Loaded:
    found = {}
    for architecture, pair in pairs.items():
        models = load_models(settings_of(pair))
        found[architecture] = (pair, models, NaivePair(pair.observer, pair.performer, models.pad_id))
    return found


def engine(pair: Pair, models: PairModels, **changes: object) -> engines.PairEngine:
    """An engine on loaded models."""
    return engines.PairEngine(models, settings_of(pair, **changes))


def apart(read: Sequence[object], expected: Sequence[object]) -> float:
    """The largest difference in any number, relative above 1, because float32 has seven digits."""
    largest = 0.0
    for one, other in zip(read, expected, strict=True):
        assert isinstance(one, PairReading)
        assert isinstance(other, NaiveScores | PairReading)
        for name in ("binoculars", "fast_detectgpt", "ppl", "x_ppl"):
            wanted = getattr(other, name)
            largest = max(largest, abs(getattr(one, name) - wanted) / max(1.0, abs(wanted)))
    return largest


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@settings(max_examples=40 if LONG else 12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=documents, budget=st.sampled_from([64, 300, 5000]))
def test_engine_equals_the_reference(loaded: Loaded, architecture: str, texts: list[list[int]], budget: int) -> None:
    """Any lengths and any batches give the reference's numbers."""
    pair, models, naive = loaded[architecture]
    read = engine(pair, models, batch_tokens=budget).read_ids(texts)
    assert apart(read, [naive.score(ids) for ids in texts]) < LIMIT


@pytest.mark.parametrize("length", [512, 2048])
def test_long_texts_equal_the_reference(loaded: Loaded, length: int) -> None:
    """Texts as long as those of the default setting, and as the longest setting, give the reference's numbers.

    The limit is relative for numbers above 1: Fast-DetectGPT grows with the root of the length, here to 76.
    """
    pair, models, naive = loaded["falcon"]
    ids = [random.Random(length).randrange(2, WORDS) for _ in range(length)]
    read = engine(pair, models, max_tokens=2048, batch_tokens=2048).read_ids([ids, ids[: length // 3]])
    for found, text in zip(read, (ids, ids[: length // 3]), strict=True):
        expected = naive.score(text)
        assert isinstance(found, PairReading)
        for name, number in expected._asdict().items():
            assert getattr(found, name) == pytest.approx(number, rel=LIMIT, abs=LIMIT)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_neighbours_do_not_matter(loaded: Loaded, architecture: str) -> None:
    """A text's scores agree to 1e-6 alone, with other texts, in another order and in other batches."""
    pair, models, _ = loaded[architecture]
    numbers = random.Random(7)
    texts = [[numbers.randrange(WORDS) for _ in range(length)] for length in (2, 5, 40, 41, 90, 150, 3, 77)]
    together = engine(pair, models, batch_tokens=5000).read_ids(texts)
    alone = [engine(pair, models).read_ids([ids])[0] for ids in texts]
    backwards = engine(pair, models, batch_tokens=200).read_ids(texts[::-1])[::-1]
    assert apart(together, alone) < BETWEEN_BATCHES
    assert apart(together, backwards) < BETWEEN_BATCHES


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_texts_are_cut_at_max_tokens(loaded: Loaded, architecture: str) -> None:
    """A text beyond max_tokens has the scores of its first max_tokens tokens, read as text or as ids."""
    pair, models, naive = loaded[architecture]
    text = "The harbour was quiet in the morning, and the boats that had come in late were still being unloaded. " * 9
    assert models.tokenizer is not None
    ids = models.tokenizer.encode(text).ids[:50]
    cut = engine(pair, models, max_tokens=50)
    (read,) = cut.read([text])
    assert isinstance(read, list)
    assert read[0].tokens == 50
    assert apart(read, [naive.score(ids)]) < LIMIT
    assert apart(cut.read_ids([models.tokenizer.encode(text).ids]), [naive.score(ids)]) < LIMIT


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_windows_follow_one_another(loaded: Loaded, architecture: str) -> None:
    """Each window has the reference's numbers of its tokens; a tail that is too short to be scored is not read."""
    pair, models, naive = loaded[architecture]
    text = "The harbour was quiet in the morning, and the boats that had come in late were still being unloaded. " * 9
    assert models.tokenizer is not None
    ids = models.tokenizer.encode(text, add_special_tokens=False).ids
    first = models.tokenizer.encode("").ids  # <s> of a llama, in front of each window
    size = 40 - len(first)
    whole, rest = divmod(len(ids), size)
    assert whole >= 2 and rest > 1
    for most, shortest in ((2, 2), (60, 2), (60, 40)):
        expected = [[*first, *ids[start : start + size]] for start in range(0, len(ids), size)][:most]
        expected = [window for window in expected if len(window) >= shortest]
        (read,) = engine(pair, models, max_tokens=40, windows=most, min_tokens=shortest).read([text])
        assert isinstance(read, list)
        assert apart(read, [naive.score(window) for window in expected]) < LIMIT


def test_pad_tokens_count_in_ppl_and_not_in_x_ppl(loaded: Loaded) -> None:
    """Positions with the pad token are left out of x_ppl only, as in the authors' code."""
    pair, models, naive = loaded["falcon"]
    ids = [5, 9, models.pad_id, 17, 200, models.pad_id, 33]
    read = engine(pair, models).read_ids([ids])
    assert apart(read, [naive.score(ids)]) < LIMIT
    everything = NaivePair(pair.observer, pair.performer).score(ids)
    assert isinstance(read[0], PairReading)
    assert read[0].ppl == pytest.approx(everything.ppl, abs=LIMIT)
    assert abs(read[0].x_ppl - everything.x_ppl) > 1e-3
    assert engine(pair, models).read_ids([[models.pad_id] * 3]) == [
        TextScore(abstain="not_a_number", tokens=3)
    ]  # nothing is left


def test_llama_reads_its_beginning_of_text(loaded: Loaded) -> None:
    """A text is tokenised as by its model's tokenizer: with <s> first for a llama, without for a falcon."""
    text = "It is not what the council had said."
    for architecture, first in (("llama", "<s>"), ("falcon", "It")):
        pair, models, naive = loaded[architecture]
        assert models.tokenizer is not None
        encoding = models.tokenizer.encode(text)
        assert encoding.tokens[0].startswith(first[:1])
        (read,) = engine(pair, models).read([text])
        assert isinstance(read, list)
        assert apart(read, [naive.score(encoding.ids)]) < LIMIT


def test_many_texts_come_back_in_order(loaded: Loaded) -> None:
    """Texts of several tokenised slices keep their order among texts without a score."""
    pair, models, naive = loaded["falcon"]
    texts = [f"{'the boats ' * (1 + index % 5)}{index}" if index % 7 else "" for index in range(150)]
    read = engine(pair, models, max_tokens=64, batch_tokens=64).read(texts)
    assert models.tokenizer is not None
    for text, found in zip(texts, read, strict=True):
        assert isinstance(found, list) == bool(text)
        if isinstance(found, list) and text.endswith(("3", "8")):
            assert apart(found, [naive.score(models.tokenizer.encode(text).ids)]) < LIMIT
