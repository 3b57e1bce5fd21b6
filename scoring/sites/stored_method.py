"""A site method as text, with all its numbers: a run keeps the one that it began with, whatever is configured later."""

from __future__ import annotations

import msgspec

from scoring.errors import BadSiteNumbers
from scoring.interface import SiteMethod
from scoring.sites.deciles import DecileNumbers, DecileTest
from scoring.sites.gaussian import GaussianParams, GaussianTest
from scoring.sites.sprt import SiteTest, SprtParams


class _Kept(msgspec.Struct, frozen=True, kw_only=True, tag_field="method", forbid_unknown_fields=True):
    close_after_ms: int


class KeptSprt(_Kept, frozen=True, tag="sprt"):
    """The method `sprt`. `close_after_ms`: see scoring.sites.sequential."""

    numbers: SprtParams


class KeptGaussian(_Kept, frozen=True, tag="gaussian"):
    """The method `gaussian`."""

    numbers: GaussianParams


class KeptDeciles(_Kept, frozen=True, tag="deciles"):
    """The method `deciles`, with the numbers themselves: their file may be another one by then."""

    numbers: DecileNumbers


KeptMethod = KeptSprt | KeptGaussian | KeptDeciles
_decoder: msgspec.json.Decoder[KeptMethod] = msgspec.json.Decoder(KeptMethod)


def text_of_method(kept: KeptMethod) -> str:
    """JSON, on one line. Raises BadSiteNumbers for numbers that could not be read back from it, as infinite ones.

    It is read once here, since a run whose method nobody can read is a run that nobody can carry on.
    """
    text = msgspec.json.encode(kept).decode()
    if _read(text) != kept:
        raise BadSiteNumbers(f"a site method whose numbers JSON does not keep: {text}")
    return text


def method_of_text(text: str) -> SiteMethod:
    """The method that `text_of_method` wrote down. Raises BadSiteNumbers for what this farmwatch cannot read."""
    return built(_read(text))


def same_method(one: str, other: str) -> bool:
    """Whether two texts are of methods that judge alike.

    Their digests say it: a text that an older version wrote lacks what has had a default since. Texts that this
    farmwatch cannot read are compared as they are.
    """
    if one == other:
        return True
    try:
        first, second = method_of_text(one), method_of_text(other)
    except BadSiteNumbers:
        return False
    return (first.name, first.digest) == (second.name, second.digest)


def _read(text: str) -> KeptMethod:
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError as error:  # also for what the parameters refuse
        raise BadSiteNumbers(f"a site method that this farmwatch cannot read: {error}") from error


def built(kept: KeptMethod) -> SiteMethod:
    """The method with these numbers."""
    if isinstance(kept, KeptDeciles):
        return DecileTest(kept.numbers, kept.close_after_ms)
    if isinstance(kept, KeptGaussian):
        return GaussianTest(kept.numbers, kept.close_after_ms)
    return SiteTest(kept.numbers, kept.close_after_ms)
