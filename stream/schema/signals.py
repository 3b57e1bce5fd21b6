"""The names of a page's signals: `kind:name`, such as `ads:adsense`, or `kind:name:id` for an id of an account."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class SignalKind(StrEnum):
    """The kinds of signals, in the order in which people read them."""

    ADS = "ads"  # of a network that pays the publisher; not the advertiser's own measuring
    AFFILIATE = "affiliate"  # a link or script that pays for sales; of a shop only with the publisher's tag
    ANALYTICS = "analytics"
    VERIFICATION = "verification"  # by which a search engine knows the owner
    CMS = "cms"
    THEME = "theme"
    SEO = "seo"  # a plugin
    BUILDER = "builder"


def kind_of_signal(signal: str) -> str:
    """The kind: a SignalKind, or that of a newer farmwatch."""
    return signal.partition(":")[0]


def names_of_kind(signals: Iterable[str], kind: SignalKind) -> list[str]:
    """The names of the signals of a kind, without ids: `wordpress`."""
    return sorted({name for signal in signals for of, name, *_ in [signal.split(":")] if of == kind})
