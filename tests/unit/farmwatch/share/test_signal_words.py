"""Signals in words."""

from __future__ import annotations

from farmwatch.share.signal_words import signal_words


def test_names_stand_by_kind_with_their_ids() -> None:
    """Those that pay first, ids in brackets, of a site with its pages; a kind of a newer farmwatch last."""
    signals = {"ads:adsense": 3, "ads:adsense:1": 2, "ads:adsense:2": 1, "cms:wordpress": 4, "a-new:one": 1}
    assert signal_words(signals) == "ads adsense (1, 2); cms wordpress; a-new one"
    assert signal_words(signals, signals) == "ads adsense 3 (1, 2); cms wordpress 4; a-new one 1"
    assert signal_words([]) == "none"
