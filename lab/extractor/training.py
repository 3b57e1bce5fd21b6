"""Labelled pages to learn the extractor `blocks` from, and the model that was learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from crawler.errors import UnusableUrl
from crawler.web.urls import normalise, site_of
from farmwatch.labels.labelled_pages import Label, LabelledPages
from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.extraction.learned.context_inputs import context_inputs
from filters.extraction.learned.inputs import block_inputs
from filters.extraction.learned.model import VERSION, BlockModel, Layer, Network, inputs_digest, sample_inputs
from filters.extraction.learned.page_blocks import PageBlocks, page_blocks
from filters.extraction.learned.word_inputs import word_inputs
from filters.extraction.page_guards import html_of, refused
from filters.extraction.pruning import prune
from filters.settings import MeasureSettings
from filters.structure.page_lines import visible_bytes, visible_text
from lab.extractor.gold import Floats, GoldTexts, words_of
from lab.extractor.networks import fit_network
from lab.extractor.words import page_words, word_scores
from scoring.errors import TooFewLabels
from stream.text.registrable_domain import registrable_domain
from stream.text.wording import counted

_UNKNOWN = "unknown:"  # before the source of pages of no known domain, which count as one
_BLOCKS_AN_EPOCH = 300  # of a page
_MOST_WORDS = 100  # beyond which a longer block counts no more
_USUAL_BLOCKS = 100  # of a page, whose blocks have the mean weight 1


class LabelledBlocks(NamedTuple):
    """The blocks of a page, their inputs without those of words [inputs, blocks], and the shares that are main text."""

    page: PageBlocks
    inputs: NDArray[np.uint8]
    shares: Floats


@dataclass(frozen=True, slots=True)
class MainTextPage:
    """A page with a labelled main text; `blocks` is None for a page from which nothing can be learned."""

    label: Label
    domain: str  # registrable, or a name of several domains with a page in common
    truth: GoldTexts
    blocks: LabelledBlocks | None


def main_text_pages(
    folder: LabelledPages, settings: MeasureSettings, advance: Callable[[int], None]
) -> list[MainTextPage]:
    """The pages of a folder, all with a labelled main text."""
    pages = [_page(label, html, settings) for label, html in folder.htmls(advance)]
    parents = {page.domain: page.domain for page in pages}

    def joined(domain: str) -> str:
        while parents[domain] != domain:
            domain = parents[domain]
        return domain

    firsts: dict[bytes, str] = {}
    for page in pages:
        text = " ".join(words_of(page.truth.text or " ".join(page.truth.belongs)))
        first = firsts.setdefault(xxhash.xxh3_128_digest(text.encode()), page.domain)
        parents[joined(page.domain)] = joined(first)
    return [replace(page, domain=joined(page.domain)) for page in pages]


def _page(label: Label, html: str, settings: MeasureSettings) -> MainTextPage:
    truth = GoldTexts(label.gold, label.belongs, label.foreign)
    domain = registrable_domain(label.site) if label.url else ""
    blocks = None
    tree = tree_of(html, settings)
    if tree is not None:
        stated = tree.xpath("//link[@rel='canonical']/@href | //meta[@property='og:url']/@content")
        for url in [] if domain else stated:
            with suppress(UnusableUrl):
                domain = registrable_domain(site_of(normalise(url)))
                break
        page = page_blocks(tree)
        shares = None if page is None else truth.shares(page.lines)
        if page is not None and shares is not None and not np.isnan(shares).all():
            blocks = LabelledBlocks(page, block_inputs(page).matrix().copy(), shares)
    return MainTextPage(label, domain or f"{_UNKNOWN}{label.source}", truth, blocks)


def tree_of(html: str, settings: MeasureSettings) -> Any:
    """The tree that an extractor gets; None for a page that MEASURE refuses."""
    html, _ = html_of(html, "", settings)
    if refused(html, html, settings) is not None:
        return None
    try:
        tree = parse(readable(html))
    except ParseFailed:
        return None
    prune(list(tree.iter()), visible_bytes(visible_text(tree)))
    return tree


def learn(pages: Sequence[MainTextPage], card: str = "") -> BlockModel:
    """The model of the pages with labelled blocks. Raises TooFewLabels, MissingExtra.

    The second network learns from probabilities by a first network that did not learn from the page: there are two of
    them, each of one half of the domains. A third one of all pages is kept.
    """
    known_pages = [(page.domain, page.blocks) for page in pages if page.blocks is not None]
    learned = [blocks for _, blocks in known_pages]
    scores = word_scores(
        [
            page_words("" if domain.startswith(_UNKNOWN) else domain, blocks.page, blocks.shares)
            for domain, blocks in known_pages
        ]
    )
    halves = [xxhash.xxh3_64_intdigest(domain.encode()) & 1 for domain, _ in known_pages]
    if len(set(halves)) < 2:
        domains = counted(len({domain for domain, _ in known_pages}), "domain")
        raise TooFewLabels(f"too few to train on: {domains}; label pages of more")
    sizes = [len(blocks.shares) for blocks in learned]
    inputs = np.concatenate(
        [np.concatenate([blocks.inputs, word_inputs(blocks.page, scores).matrix()]) for blocks in learned], axis=1
    )
    shares = np.concatenate([blocks.shares for blocks in learned])
    weights = np.concatenate([_weights(blocks) for blocks in learned])
    known = ~np.isnan(shares)
    taken = known * np.repeat(np.minimum(1, _BLOCKS_AN_EPOCH / np.array(sizes)), sizes)
    half = np.repeat(halves, sizes)

    def network(inputs: NDArray[np.uint8], rows: Any, seed: int) -> Network:
        columns = (np.where(known, shares, 0)[rows], weights[rows], taken[rows])
        layers = fit_network(np.ascontiguousarray(inputs[:, rows].T), *columns, seed)
        return Network(
            tuple(Layer(len(bias), of.astype("<i2").tobytes(), bias.astype("<i4").tobytes()) for of, bias in layers)
        )

    unseen = np.zeros(len(shares), np.int64)
    for part in (0, 1):
        unseen[half != part] = network(inputs, half == part, seed=part).probabilities(inputs[:, half != part])
    parts = np.split(unseen, np.cumsum(sizes)[:-1])
    around = [context_inputs(blocks.page, part).matrix() for blocks, part in zip(learned, parts, strict=True)]
    first = network(inputs, slice(None), seed=2)
    second = network(np.concatenate([inputs, np.concatenate(around, axis=1)]), slice(None), seed=3)
    return BlockModel(
        version=VERSION,
        card=card,
        inputs=inputs_digest(sample_inputs(scores.marked)),
        names=dict(sorted(scores.names.items())),
        texts=dict(sorted(scores.texts.items())),
        marked=scores.marked,
        networks=(first, second),
    )


def _weights(blocks: LabelledBlocks) -> Floats:
    """The square root of a block's words; a page of more known blocks weighs more, but less than in proportion."""
    known = ~np.isnan(blocks.shares)
    roots = np.sqrt(np.minimum(blocks.page.words, _MOST_WORDS))
    return np.asarray(roots / roots[known].mean() * np.sqrt(_USUAL_BLOCKS / known.sum()), np.float32)


def card_of(pages: Sequence[MainTextPage], folder: LabelledPages) -> str:
    """What a model of these pages learned from, with the licences of the labels."""
    number = Counter(page.label.source for page in pages if page.blocks is not None)
    return "; ".join(
        f"{source}: {counted(pages_of, 'page')}, licence {folder.licence(source) or 'unknown'}"
        for source, pages_of in sorted(number.items())
    )
