"""Labelled pages as what the extractor `blocks` learns from, the model that was learned, and its texts out of fold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from crawler.errors import UnusableUrl
from crawler.web.urls import normalise, site_of
from farmwatch.labels.block_gold import Truth
from farmwatch.labels.block_words import PageWords, page_words, word_scores
from farmwatch.labels.labelled_pages import Label
from filters.extraction.html_tree import ParseFailed, parse
from filters.extraction.learned.context_inputs import context_inputs
from filters.extraction.learned.inputs import MOST, block_inputs
from filters.extraction.learned.main_blocks import is_sure
from filters.extraction.learned.model import (
    HIDDEN_UNITS,
    INPUT_UNITS,
    VERSION,
    WEIGHT_UNITS,
    BlockModel,
    Layer,
    Network,
    best_blocks,
    inputs_digest,
)
from filters.extraction.learned.page_blocks import PageBlocks, page_blocks
from filters.extraction.learned.word_inputs import word_inputs
from scoring.errors import TooFewLabels
from scoring.training.additive import fold_of
from scoring.training.networks import Units, WholeLayer, fit
from stream.text.registrable_domain import registrable_domain
from stream.text.wording import counted

FOLDS = 5
_UNITS = Units(INPUT_UNITS, HIDDEN_UNITS, WEIGHT_UNITS, MOST)
_BLOCKS_AN_EPOCH = 300  # of a page
_MOST_WORDS = 100  # beyond which a longer block counts no more
_USUAL_BLOCKS = 100  # of a page, whose blocks have the mean weight 1
Floats = NDArray[np.float32]
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class GoldPage:
    """A page with a truth; `page` is None without a block, `shares` for a page that nothing is learned from."""

    label: Label
    domain: str  # registrable
    truth: Truth
    page: PageBlocks | None
    inputs: Any  # [inputs, blocks], without those of words
    shares: Floats | None
    words: PageWords | None

    @property
    def is_learned(self) -> bool:
        """Whether a model learns from it."""
        return self.shares is not None


def gold_page(label: Label, html: str) -> GoldPage:
    """A labelled page with the HTML."""
    domain, truth = registrable_domain(label.site), Truth(label.gold, label.belongs, label.foreign)
    try:
        tree = parse(html.replace("\0", ""))
    except ParseFailed:
        page = None
    else:
        page = page_blocks(tree)
        if not label.url:
            domain = _stated_domain(tree) or domain
    shares = None if page is None else truth.shares(page.lines)
    if page is None or shares is None or np.isnan(shares).all():
        return GoldPage(label, domain, truth, page, None if page is None else block_inputs(page).matrix(), None, None)
    return GoldPage(label, domain, truth, page, block_inputs(page).matrix(), shares, page_words(domain, page, shares))


def _stated_domain(tree: Any) -> str:
    """The domain of the URL that a page states for itself; "" = none."""
    for url in tree.xpath("//link[@rel='canonical']/@href | //meta[@property='og:url']/@content"):
        with suppress(UnusableUrl):
            return registrable_domain(site_of(normalise(url)))
    return ""


def learn(pages: Sequence[GoldPage], card: str = "") -> BlockModel:
    """The model of the pages that can be learned from. Raises TooFewLabels.

    The second network learns from probabilities by a first network that did not see the page: there are two of them,
    each for one half of the domains. A third one that saw all pages is kept.
    """
    learned = [page for page in pages if page.page is not None and page.shares is not None]
    scores = word_scores([page.words for page in learned if page.words is not None])
    half = np.array([xxhash.xxh3_64_intdigest(page.domain.encode()) & 1 for page in learned])
    if len(set(half.tolist())) < 2:
        raise TooFewLabels("pages of so few domains are too few to learn from: label pages of more domains")
    sizes = np.array([len(page.shares) for page in learned if page.shares is not None])
    ends = np.cumsum(sizes)
    inputs = np.concatenate(
        [np.concatenate([page.inputs, word_inputs(page.page, scores).matrix()]) for page in learned if page.page],
        axis=1,
    )
    shares = np.concatenate([page.shares for page in learned if page.shares is not None])
    known = ~np.isnan(shares)
    labels = np.where(known, shares, 0).astype(np.float32)
    weights = np.concatenate([_weights(page) for page in learned])
    taken = known * np.repeat(np.minimum(1, _BLOCKS_AN_EPOCH / sizes), sizes)
    half_of = np.repeat(half, sizes)

    def network(inputs: Any, rows: Any, seed: int) -> Network:
        return _network(
            fit(np.ascontiguousarray(inputs[:, rows].T), labels[rows], weights[rows], taken[rows], _UNITS, seed)
        )

    unseen = np.zeros(len(labels), np.int64)
    for part in (0, 1):
        other = network(inputs, half_of == part, seed=part)
        unseen[half_of != part] = other.probabilities(inputs[:, half_of != part])
    first = network(inputs, slice(None), seed=2)
    around = [
        context_inputs(page.page, unseen[end - size : end]).matrix()
        for page, end, size in zip(learned, ends, sizes, strict=True)
        if page.page
    ]
    second = network(np.concatenate([inputs, np.concatenate(around, axis=1)]), slice(None), seed=3)
    return BlockModel(
        version=VERSION,
        card=card,
        inputs=inputs_digest(tuple(scores.marked)),
        names=dict(sorted(scores.names.items())),
        texts=dict(sorted(scores.texts.items())),
        marked=tuple(scores.marked),
        networks=(first, second),
    )


def text_of(model: BlockModel, page: GoldPage) -> str | None:
    """The text that the model takes of a page; None if another extractor is asked."""
    if page.page is None:
        return None
    words = np.diff(page.page.first_word)
    kept, f1 = best_blocks(model.probabilities(page.page), words)
    return "\n".join(compress(page.page.lines, kept.tolist())) if is_sure(f1, int(words[kept].sum())) else None


def out_of_fold(
    pages: Sequence[GoldPage], test_only: Collection[str], on_progress: Advance = lambda _: None
) -> list[str | None]:
    """`text_of` each page by a model that saw no page of its domain. `on_progress` gets 1 after each of FOLDS fits.

    Nothing is learned from the sources `test_only`. Raises TooFewLabels.
    """
    folds = fold_of([page.domain for page in pages], FOLDS)
    found: list[str | None] = [None] * len(pages)
    for fold in range(FOLDS):
        model = learn(
            [page for page, of in zip(pages, folds, strict=True) if of != fold and page.label.source not in test_only]
        )
        for place in np.flatnonzero(folds == fold).tolist():
            found[place] = text_of(model, pages[place])
        on_progress(1)
    return found


def card_of(pages: Sequence[GoldPage], licences: Mapping[str, str]) -> str:
    """What a model of these pages learned from."""
    number = Counter(page.label.source for page in pages if page.is_learned)
    return "; ".join(
        f"{source}: {counted(pages_of, 'page')}" + (f", labels {licences[source]}" if source in licences else "")
        for source, pages_of in sorted(number.items())
    )


def encode_model(model: BlockModel) -> bytes:
    """The file of a model: JSON with a field a line."""
    lines = (
        b'"%s":%s' % (name.encode(), msgspec.json.encode(getattr(model, name))) for name in model.__struct_fields__
    )
    return b"{" + b",\n".join(lines) + b"}\n"


def _weights(page: GoldPage) -> Floats:
    """The square root of a block's words; a page of more known blocks weighs more, but less than in proportion."""
    assert page.page is not None and page.shares is not None
    known = ~np.isnan(page.shares)
    found = np.sqrt(np.minimum(np.diff(page.page.first_word), _MOST_WORDS))
    return np.asarray(found / found[known].mean() * np.sqrt(_USUAL_BLOCKS / known.sum()), np.float32)


def _network(layers: Sequence[WholeLayer]) -> Network:
    return Network(
        tuple(
            Layer(len(layer.bias), layer.weights.astype("<i2").tobytes(), layer.bias.astype("<i4").tobytes())
            for layer in layers
        )
    )
