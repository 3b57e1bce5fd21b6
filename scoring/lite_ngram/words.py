"""Words of a text, without numpy: tokens, English function words, and the limits that all detectors share."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_CHARS, LONGEST_WORDS = 1_000_000, 50_000  # a longer text is a book or a dump, not an article
MIN_FUNCTION_WORDS_PER_100 = 18  # with fewer, a text is a list, a table or another language; English prose has 40-55

_TOKEN = re.compile(rb"[a-z]+(?:'[a-z]+)?|\d+|[.,!?;:\"()]|\xe2\x80\x94")  # the last is the dash of `normalise`
_WORDS = b"""
a about above across after again against all almost along also although always am among an and another any anyone
anything are around as at away be became because become been before behind being below between both but by can can't
cannot could couldn't did didn't do does doesn't doing don't down during each either else enough even ever every
everyone everything few for from further had hadn't has hasn't have haven't having he he's her here hers herself him
himself his how however i i'd i'll i'm i've if in instead into is isn't it it's its itself just least less like many
may maybe me might mine more most much must my myself near neither never no nobody none nor not nothing now of off
often on once one only onto or other others our ours ourselves out over own perhaps quite rather really same shall
she she's should shouldn't since so some someone something sometimes soon still such than that that's the their
theirs them themselves then there there's therefore these they they're they've this those though through thus to
together too toward towards under unless until up upon us very was wasn't we we'll we're we've were weren't what
what's whatever when where whether which while who who's whom whose why will with within without won't would
wouldn't yes yet you you'll you're you've your yours yourself
"""

FUNCTION_WORDS = frozenset(_WORDS.split())


def tokens(normalised: str) -> list[bytes]:
    """Lower-case tokens of a normalised text: words, ASCII digits, punctuation. Other scripts give none."""
    return _TOKEN.findall(normalised.lower().encode())


def has_few_function_words(tokens: Iterable[bytes], words: int) -> bool:
    """Whether lower-case `tokens` of a text with this many words have too few English function words for prose."""
    return not words or 100 * sum(map(FUNCTION_WORDS.__contains__, tokens)) < MIN_FUNCTION_WORDS_PER_100 * words
