"""Canary sites: pages of known truth that pass through the live stages, under names that no real site can have.

The last label of their name is `invalid`, which RFC 2606 reserves and no resolver answers. The name holds everything
about the site, so that its row alone shows whether its verdict is right:

    label.digest.pages.round.truth.canary.invalid        such as novels.5f0c2a91d3b7e604.12.20405.human.canary.invalid

`label` is the operator's name of the site, `digest` that of its content, `pages` the number of sent pages, `round` the
number of intervals between rounds since 1970, and `truth` its author: `human` or `llm`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from stream.schema.vocabulary import Truth

_SUFFIX = ".canary.invalid"
_NAME = re.compile(
    r"([a-z0-9][a-z0-9-]{0,39})\.([0-9a-f]{16})\.([0-9]{1,6})\.([0-9]{1,12})\.(human|llm)\.canary\.invalid"
)
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class CanaryName(NamedTuple):
    """The parts of a canary site's name."""

    label: str
    digest: str  # of the content, 16 hexadecimal digits
    pages: int
    round: int
    truth: str

    @property
    def site(self) -> str:
        """The name itself."""
        return f"{self.label}.{self.digest}.{self.pages}.{self.round}.{self.truth}{_SUFFIX}"

    @property
    def content(self) -> str:
        """The part of the name that is the same in every round."""
        return f"{self.digest}.{self.truth}"


def is_canary(site: str) -> bool:
    """Whether the site is a canary: its verdict measures errors, and never counts in a rate."""
    return truth_of(site) is not None


def truth_of(site: str) -> str | None:
    """`human` or `llm`, the author of the canary site's pages; None for every other site."""
    if not site.endswith(_SUFFIX):
        return None
    label, _, truth = site.removesuffix(_SUFFIX).rpartition(".")
    return truth if label and truth in tuple(Truth) else None


def canary_name(site: str) -> CanaryName | None:
    """The parts of a canary site's name; None for any other name."""
    match = _NAME.fullmatch(site)
    if match is None:
        return None
    label, digest, pages, number, truth = match.groups()
    return CanaryName(label, digest, int(pages), int(number), truth)


def is_label(text: str) -> bool:
    """Whether this is a valid label: lower-case ASCII letters, digits and dashes, at most 40."""
    return _LABEL.fullmatch(text) is not None
