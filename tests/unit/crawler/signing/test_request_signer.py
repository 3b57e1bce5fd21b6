"""Signatures of requests, as an independent implementation of RFC 9421 verifies them."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from http_message_signatures import InvalidSignature

from crawler.signing.request_signer import VALID_S, RequestSigner
from crawler.signing.signing_key import SigningKey, make_key
from tests.support.web.signed import AGENT, verified_request


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return make_key(tmp_path / "key.pem")


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://a.example/x?y=1", "a.example"),
        ("https://a.example:443/", "a.example"),
        ("http://a.example:8080/", "a.example:8080"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
    ],
)
def test_a_signature_is_verified_by_others(key: SigningKey, url: str, authority: str) -> None:
    """The verifier accepts it for this authority, with what the draft demands: agent, times, key and tag."""
    found = verified_request(url, dict(RequestSigner(key, AGENT).headers(authority)), key.jwk)
    assert found.covered_components['"@authority"'] == authority
    assert found.covered_components['"signature-agent";key="sig1"'] == f'"{AGENT}"'
    assert (found.parameters["keyid"], found.parameters["tag"]) == (key.id, "web-bot-auth")


@pytest.mark.parametrize("change", ["host", "agent", "key", "expired"])
def test_a_signature_is_good_for_one_host_agent_and_time(key: SigningKey, tmp_path: Path, change: str) -> None:
    """Another host, another agent, another key of the same name, or another hour: it is refused."""
    now = time.time() - (VALID_S + 60 if change == "expired" else 0)
    headers = dict(RequestSigner(key, AGENT, lambda: now).headers("a.example"))
    url, jwk = "https://a.example/", key.jwk
    if change == "host":
        url = "https://b.example/"
    elif change == "agent":
        headers["Signature-Agent"] = 'sig1="https://other.example"'
    elif change == "key":
        jwk = make_key(tmp_path / "other.pem").jwk | {"kid": key.id}
    with pytest.raises(InvalidSignature):
        verified_request(url, headers, jwk)


@pytest.mark.parametrize(("ahead_s", "is_valid"), [(-70, False), (-55, True), (0, True), (290, True), (310, False)])
def test_a_clock_that_differs_by_a_minute_does_no_harm(key: SigningKey, ahead_s: int, is_valid: bool) -> None:
    """A server whose clock is up to a minute behind ours, or five ahead, accepts the signature; no other does."""
    headers = dict(RequestSigner(key, AGENT, lambda: time.time() - ahead_s).headers("a.example"))
    if is_valid:
        assert verified_request("https://a.example/", headers, key.jwk)
        return
    with pytest.raises(InvalidSignature):
        verified_request("https://a.example/", headers, key.jwk)


def test_no_two_signatures_are_alike(key: SigningKey) -> None:
    """Each has a nonce of its own, so that a server may refuse a repeated one."""
    signer = RequestSigner(key, AGENT, lambda: 1.8e9)
    made = [dict(signer.headers("a.example")) for _ in range(3)]
    nonces = {match[1] for each in made if (match := re.search(r'nonce="([^"]{86,})"', each["Signature-Input"]))}
    assert len(nonces) == 3 and len({each["Signature"] for each in made}) == 3
