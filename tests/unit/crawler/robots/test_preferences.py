"""Preferences on the use by AI: the drafts' own examples, unknown words, and conflicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.robots.opt_outs import forbids_mining, opt_outs
from crawler.robots.preferences import SIGNALS_CAP, WORDS_CAP, prefers_no, words_of
from crawler.robots.rules import RobotsRules, explain

# draft-ietf-aipref-attach, section 3.4
AIPREF = b"""User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: / train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: / train-ai=y
"""
# contentsignals.org
SIGNALS = b"User-Agent: *\nContent-Signal: ai-train=no, search=yes, ai-input=no\nAllow: /\n"


def stated(text: bytes, path: str = "/", agent: str = "farmwatch") -> list[str]:
    signals = RobotsRules(text, agent).preferences(f"https://a.example{path}")
    return [signal.removeprefix("robots.txt:content-") for signal in signals]


@pytest.mark.parametrize("text", [AIPREF, AIPREF.replace(b": / ", b": ")], ids=["with paths", "of later drafts"])
@pytest.mark.parametrize(
    ("path", "agent", "allowed", "words"),
    [
        ("/test", "farmwatch", True, ["usage:train-ai=n"]),
        ("/never/test", "farmwatch", False, ["usage:train-ai=n"]),
        ("/ai-ok/test", "farmwatch", True, ["usage:train-ai=y"]),
        ("/never/test", "ExampleBot", True, ["usage:train-ai=y"]),
    ],
)
def test_the_example_of_the_aipref_draft(text: bytes, path: str, agent: str, allowed: bool, words: list[str]) -> None:
    """The group for us and the longest path decide on crawling and on use, each by its own rules."""
    assert RobotsRules(text, agent).allows(f"https://a.example{path}") is allowed
    assert stated(text, path, agent) == words
    assert explain(text, agent, f"https://a.example{path}").preferences == (f"robots.txt:content-{words[0]}",)


def test_the_example_of_content_signals() -> None:
    """All signals of the line are recorded, the yes too; a comment is none."""
    assert stated(SIGNALS) == ["signal:ai-train=no", "signal:search=yes", "signal:ai-input=no"]
    assert stated(SIGNALS.replace(b"search=yes, ai-input=no", b"# search=yes")) == ["signal:ai-train=no"]
    assert stated(b"# Content-Signal: ai-train=no\n" + SIGNALS.replace(b"Content-S", b"# S")) == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("train-ai=n", ["train-ai=n"]),
        ("train-ai=y, search=n", ["train-ai=y", "search=n"]),
        ("Train-AI = N ,search=y", ["train-ai=n", "search=y"]),
        ("train-ai=n;until=2030, x=maybe", ["train-ai=n", "x=maybe"]),
        ("train-ai=n, train-ai=y", ["train-ai=y"]),
        ("no, thanks, =n, train-ai=, ä=n, <b>=n", []),
        ("", []),
    ],
)
def test_words_are_read_as_the_dictionaries_of_rfc_9651(value: str, words: list[str]) -> None:
    """Parameters are ignored, the last of two equal keys counts, unknown words are kept, and no word is guessed."""
    assert list(words_of(value)) == words


def test_conflicting_lines_all_count() -> None:
    """Lines of one path are separate statements, of two forms too; the no prevails."""
    text = b"User-agent: *\nContent-Usage: / train-ai=y\nContent-Usage: / train-ai=n\nContent-Signal: ai-train=yes\n"
    assert stated(text) == ["usage:train-ai=y", "usage:train-ai=n", "signal:ai-train=yes"]
    assert prefers_no(stated(text)) and not prefers_no(stated(text.replace(b"=n\n", b"=y\n")))


def test_only_defined_noes_to_ai_are_noes() -> None:
    """A no to search, an unknown use, an unknown value and a yes are no reason to leave a page."""
    assert all(map(prefers_no, (["x:train-ai=n"], ["x:ai-use=n"], ["x:ai-train=no"], ["x:a=y", "x:ai-input=no"])))
    assert not prefers_no(["x:search=n", "x:train-ai=never", "x:genai=n", "x:ai-train=yes", "header:noai"])


def test_headers_are_recorded_and_are_no_opt_outs() -> None:
    """Both headers are signals of the page, beside the opt-outs, which are obeyed by another setting."""
    headers = {"content-usage": "train-ai=n", "content-signal": "ai-train=no, search=yes", "x-robots-tag": "nofollow"}
    signals = opt_outs(headers, b"", "farmwatch")
    assert signals == [
        "header:nofollow",
        "header:content-usage:train-ai=n",
        "header:content-signal:ai-train=no",
        "header:content-signal:search=yes",
    ]
    assert not forbids_mining(signals) and forbids_mining([*signals, "header:noai"]) and prefers_no(signals)


def test_a_content_usage_rule_ends_the_lines_of_agents() -> None:
    """It is a rule of its group by the draft: an agent named after it begins another group."""
    text = b"User-agent: *\nContent-Usage: /x train-ai=n\nUser-agent: other\nDisallow: /\n"
    assert RobotsRules(text, "farmwatch").allows("https://a.example/") and stated(text, "/x") == ["usage:train-ai=n"]


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_are_read(value: bytes, path: str) -> None:
    """No line breaks the parser; what is kept is short and plain."""
    text = b"User-agent: *\n" + b"Content-Usage: /*a " + value + b"\nContent-Signal: " + value + b"=n,\n"
    for signal in RobotsRules(text, "farmwatch").preferences(f"https://a.example/{path}"):
        assert signal.isascii() and signal.isprintable() and len(signal) < 100


def test_the_lines_of_a_hostile_file_are_capped() -> None:
    """Thousands of lines or words cost no more than the first ones, of which a no to a use by AI is not lost."""
    many = b"".join(b"Content-Usage: / a%d=n\n" % n for n in range(10_000))
    assert len(stated(b"User-agent: *\n" + many)) == SIGNALS_CAP
    wide = b"".join(b"Content-Usage: / " + b",".join(b"a%d=y" % n for n in range(s, s + 15)) + b"\n" for s in (0, 15))
    most = stated(b"User-agent: *\n" + wide + b"Content-Signal: x=y, z=y, b=y, ai-train=no\n")
    assert len(most) == SIGNALS_CAP and prefers_no(most)
    assert len(stated(b"User-agent: *\nContent-Signal: " + b", ".join(b"a%d=n" % n for n in range(99)))) <= WORDS_CAP
