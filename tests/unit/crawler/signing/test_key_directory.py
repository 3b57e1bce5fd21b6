"""The key directory and its signatures, as an independent implementation of RFC 9421 verifies them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from http_message_signatures import InvalidSignature

from crawler.signing.key_directory import MEDIA_TYPE, key_directory
from crawler.signing.request_signer import RequestSigner
from crawler.signing.signing_key import make_key
from tests.support.web.signed import AGENT, verified_directory, verified_request


def test_each_key_signs_the_directory(tmp_path: Path) -> None:
    """Of two keys, as in a rotation, each has a signature over the site and the content, and each verifies requests."""
    keys = [make_key(tmp_path / name) for name in ("new.pem", "old.pem")]
    directory = key_directory(keys, "crawler.example", time.time())
    headers = dict(directory.headers)
    jwks = json.loads(directory.body)["keys"]
    assert headers["Content-Type"] == MEDIA_TYPE
    assert [jwk["kid"] for jwk in jwks] == [key.id for key in keys] and not any("d" in jwk for jwk in jwks)
    for number, key in enumerate(keys, 1):
        found = verified_directory("crawler.example", headers, directory.body, jwks, f"sig{number}")
        assert (found.parameters["keyid"], found.parameters["expires"]) == (key.id, directory.expires)
        signed = dict(RequestSigner(key, AGENT).headers("a.example"))
        assert verified_request("https://a.example/", signed, jwks[number - 1])


@pytest.mark.parametrize("change", ["site", "content", "expired"])
def test_a_copied_or_changed_directory_is_refused(tmp_path: Path, change: str) -> None:
    """The signature is not valid at another site, for other content, or after its time."""
    key = make_key(tmp_path / "key.pem")
    now_s = time.time() - (100 * 86_400 if change == "expired" else 0)
    directory = key_directory([key], "crawler.example", now_s)
    authority = "other.example" if change == "site" else "crawler.example"
    body = directory.body + b" " if change == "content" else directory.body
    with pytest.raises(InvalidSignature):
        verified_directory(authority, dict(directory.headers), body, [key.jwk], "sig1")


def test_it_is_valid_at_once_on_a_clock_that_is_behind(tmp_path: Path) -> None:
    """A verifier must refuse a signature from the future: this one begins a minute ago."""
    key = make_key(tmp_path / "key.pem")
    directory = key_directory([key], "crawler.example", time.time() + 50)
    assert verified_directory("crawler.example", dict(directory.headers), directory.body, [key.jwk], "sig1")
