"""A site method as text, with all its numbers: a run keeps the one that it began with, whatever is configured later."""

from __future__ import annotations

import msgspec

from scoring.deciles import DecileNumbers, DecileTest
from scoring.errors import BadSiteNumbers
from scoring.gaussian_test import GaussianParams, GaussianTest
from scoring.site_method import SiteMethod
from scoring.site_verdict import SiteTest, SprtParams


class _Kept(msgspec.Struct, frozen=True, kw_only=True, tag_field="method", forbid_unknown_fields=True):
    close_after_ms: int


class KeptSprt(_Kept, frozen=True, tag="sprt"):
    """The method `sprt`. `close_after_ms`: see scoring.sequential."""

    numbers: SprtParams


class KeptGaussian(_Kept, frozen=True, tag="gaussian"):
    """The method `gaussian`."""

    numbers: GaussianParams


class KeptDeciles(_Kept, frozen=True, tag="deciles"):
    """The method `deciles`, with the numbers themselves: their file may be another one by then."""

    numbers: DecileNumbers


KeptMethod = KeptSprt | KeptGaussian | KeptDeciles
_decoder = msgspec.json.Decoder(KeptMethod)


def text_of_method(kept: KeptMethod) -> str:
    """JSON, on one line."""
    return msgspec.json.encode(kept).decode()


def method_of_text(text: str) -> SiteMethod:
    """The method that `text_of_method` wrote down. Raises BadSiteNumbers for what this farmwatch cannot read."""
    try:
        kept = _decoder.decode(text)
    except msgspec.DecodeError as error:
        raise BadSiteNumbers(f"a site method that this farmwatch cannot read: {error}") from error
    return built(kept)


def built(kept: KeptMethod) -> SiteMethod:
    """The method with these numbers."""
    if isinstance(kept, KeptDeciles):
        return DecileTest(kept.numbers, kept.close_after_ms)
    if isinstance(kept, KeptGaussian):
        return GaussianTest(kept.numbers, kept.close_after_ms)
    return SiteTest(kept.numbers, kept.close_after_ms)
