"""The site methods: each with how it is made from settings, and its form as text.

A run keeps its first method as text, with its numbers, independent of later settings.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from scoring.errors import BadSiteNumbers, UnreadableMethod
from scoring.interface import MethodName
from scoring.sites.deciles import DecileTest, load_deciles
from scoring.sites.settings import TallySettings
from scoring.sites.sprt import SiteTest, SprtParams, params_for

SiteMethod = SiteTest | DecileTest


METHODS: dict[MethodName, Callable[[TallySettings, str, SprtParams | None], SiteMethod]] = {
    "sprt": lambda settings, detector, site_test: SiteTest(
        settings.sprt or site_test or params_for(detector), settings.close_after_ms
    ),
    "deciles": lambda settings, detector, _: DecileTest(
        load_deciles(detector, settings.deciles), settings.close_after_ms
    ),
}
_decoder: msgspec.json.Decoder[SiteMethod] = msgspec.json.Decoder(SiteMethod)


def site_method(settings: TallySettings, detector: str, site_test: SprtParams | None = None) -> SiteMethod:
    """The method of `settings` for page scores of the identity `detector`.

    `site_test` is that of the detector's threshold set: `sprt` uses it if the settings have no numbers. Raises
    NoSiteTest if no numbers belong to the detector, BadSiteNumbers for an unusable file of deciles.
    """
    return METHODS[settings.method](settings, detector, site_test)


def text_of_method(method: SiteMethod) -> str:
    """JSON, on one line. Raises BadSiteNumbers for numbers that JSON does not keep, such as infinite ones."""
    text = msgspec.json.encode(method).decode()
    if method_of_text(text) != method:
        raise BadSiteNumbers(f"a site method whose numbers JSON does not keep: {text}")
    return text


def method_of_text(text: str) -> SiteMethod:
    """The method that `text_of_method` wrote. Raises UnreadableMethod for a text that this farmwatch cannot read."""
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError as error:  # also for a method that is gone, and for numbers that the parameters refuse
        raise UnreadableMethod(f"a site method that this farmwatch cannot read: {error}") from error


def same_method(text: str, other: str) -> bool:
    """Whether two texts describe equal methods; an unreadable text only equals itself."""
    if text == other:
        return True
    try:
        return method_of_text(text).digest == method_of_text(other).digest
    except BadSiteNumbers:
        return False
