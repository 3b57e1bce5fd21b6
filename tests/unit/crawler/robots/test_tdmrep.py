"""tdmrep.json: which URLs it reserves, and hostile files."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.robots.tdmrep import PATTERNS_CAP, RULES_CAP, TdmRep, TdmRule

_RULES = [
    {"location": "/a/", "tdm-reservation": 1},
    {"location": "/b/img/*.jpg", "tdm-reservation": 0},
    {"location": "/b/", "tdm-reservation": 1, "tdm-policy": "https://a.example/policy.json"},
    {"location": "/b/late", "tdm-reservation": 0},
    {"location": "/exact$", "tdm-reservation": 1},
    {"location": "/caf\u00e9", "tdm-reservation": 1},
]


@pytest.mark.parametrize(
    ("path", "reserved"),
    [
        ("/", False),
        ("/a/x.html", True),
        ("/a", False),
        ("/A/x.html", False),
        ("/b/img/1.jpg", False),
        ("/b/img/1.png", True),
        ("/b/late", True),
        ("/exact", True),
        ("/exact/2", False),
        ("/caf%C3%A9", True),
        ("/%61/x", True),
    ],
)
def test_the_first_rule_that_matches_counts(path: str, reserved: bool) -> None:
    """Locations match as in robots.txt, case counts, and the first matching rule decides."""
    assert TdmRep.parse(json.dumps(_RULES).encode()).reserves(f"https://a.example{path}") is reserved


def test_the_policy_of_a_rule_is_told() -> None:
    """A rule's policy, with the owner's conditions, can be shown."""
    rule = TdmRep.parse(json.dumps(_RULES).encode()).rule_for("https://a.example/b/x")
    assert rule == TdmRule("/b/", True, "https://a.example/policy.json")


@pytest.mark.parametrize(
    ("body", "reserved"),
    [
        ('[{"location": "/", "tdm-reservation": 1}]', True),
        ('{"location": "/", "tdm-reservation": 1}', True),
        ('[{"location": "*", "tdm-reservation": "1"}]', True),
        ('[{"location": "https://a.example/", "tdm-reservation": true}]', True),
        ('[{"location": "x", "tdm-reservation": 1.0}]', True),
        ('[7, null, {"location": 3}, {"location": "/x", "tdm-reservation": 1}]', True),
        ('[{"location": "/", "tdm-reservation": 1}, {"location": "/cut o', True),
        ('[{"location": "/", "tdm-reservation": 1},]', True),
        ('\ufeff {"location": "/", "tdm-reservation": 1} {"location": "/y"', True),
        ('[{"location": "/", "tdm-reservation": 0}]', False),
        ('[{"location": "/", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1', False),
        ('[{"location": "/", "tdm-reservation": 2}]', False),
        ('[{"location": "/"}]', False),
        ('[{"tdm-reservation": 1}]', False),
        ('[{"location": " ", "tdm-reservation": 1}]', False),
        ('"1"', False),
        ("<html>not here</html>", False),
        ("", False),
        ("[" * 100_000, False),
        ("{" * 100_000, False),
        ('{"' * 50_000, False),
        ("{}" * 50_000, False),
        ("[" + "9" * 100_000, False),
    ],
)
def test_what_an_owner_plainly_meant_counts(body: str, reserved: bool) -> None:
    """A reservation with small mistakes counts; any other file reserves nothing."""
    assert TdmRep.parse(body.encode()).reserves("https://a.example/x") is reserved


def test_a_byte_order_mark_is_no_obstacle() -> None:
    """The file may be in any encoding of JSON, with or without a byte order mark."""
    text = '[{"location": "/", "tdm-reservation": 1}]'
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert TdmRep.parse(text.encode(encoding)).reserves("https://a.example/")


def test_what_lies_beyond_the_caps_is_not_read() -> None:
    """The number of rules and the length of locations are limited, which bounds the time of a match."""
    many = [{"location": "/x", "tdm-reservation": 0}] * RULES_CAP + [{"location": "/", "tdm-reservation": 1}]
    assert len(TdmRep.parse(json.dumps(many).encode()).rules) == RULES_CAP
    long = [{"location": "/" + "*a" * PATTERNS_CAP, "tdm-reservation": 1}]
    assert TdmRep.parse(json.dumps(long).encode()).rules == ()


@given(st.binary(max_size=200), st.text(max_size=50))
def test_no_file_raises(body: bytes, location: str) -> None:
    """Any bytes and any location give rules that can be queried."""
    TdmRep.parse(body).reserves("https://a.example/x?y")
    for rule in ({"location": location, "tdm-reservation": 1}, [location], location):
        TdmRep.parse(json.dumps([rule]).encode()).reserves("https://a.example/x?y")


def test_a_file_is_read_once_and_others_push_it_out() -> None:
    """The same text gives the same parsed rules, and the cache is bounded."""
    text = json.dumps(_RULES).encode()
    first = TdmRep.parse(text)
    assert TdmRep.parse(bytes(bytearray(text))) is first
    for number in range(1000):
        TdmRep.parse(b'{"location": "/%d", "tdm-reservation": 1}' % number)
    again = TdmRep.parse(text)
    assert again is not first and again.rules == first.rules
    worst = json.dumps([{"location": "\u00e9*" * 9 + "\U0001f600"}] * 1000, ensure_ascii=False).encode()[: 64 * 1024]
    tracemalloc.start()
    rules = TdmRep.parse(worst)
    kept_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert rules.rules and kept_bytes < 1.5 * 2**20
