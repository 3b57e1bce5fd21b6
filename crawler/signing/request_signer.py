"""Signatures of requests by draft-ietf-webbotauth-httpsig-protocol (Web Bot Auth), with RFC 9421.

What is signed is the authority of the request and the site on which the key is published. Both are short and known, so
the signature base is one template; the tests verify it with an independent implementation of RFC 9421.

A signature is valid for minutes: whoever sees one could repeat it to the same authority until then. It begins in the
past, for servers whose clock is behind. Its nonce makes no two alike, as servers want that refuse a repeated one.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path

from crawler.settings import CrawlSettings
from crawler.signing.signing_key import SigningKey, read_key

LABEL = "sig1"
EARLIER_S = 60  # that a signature begins before now
VALID_S = 300  # from now
_NONCE_BYTES = 64
_COVERED = f'("@authority" "signature-agent";key="{LABEL}")'

Header = tuple[str, str]


class RequestSigner:
    """Signs requests as the agent at an https origin, whose key directory has the key."""

    def __init__(self, key: SigningKey, agent: str, clock: Callable[[], float] = time.time) -> None:
        self._sign = key.sign
        self._clock = clock
        self._agent = ("Signature-Agent", f'{LABEL}="{agent}"')
        self._signed_agent = f'"signature-agent";key="{LABEL}": "{agent}"\n'
        self._key = f';keyid="{key.id}";alg="ed25519"'

    def headers(self, authority: str) -> list[Header]:
        """The headers of a request to `authority`: its host, and its port unless that is the scheme's own."""
        now = int(self._clock())
        nonce = base64.b64encode(os.urandom(_NONCE_BYTES)).decode()
        given = (
            f"{_COVERED};created={now - EARLIER_S};expires={now + VALID_S}{self._key}"
            f';nonce="{nonce}";tag="web-bot-auth"'
        )
        base = f'"@authority": {authority}\n{self._signed_agent}"@signature-params": {given}'
        signature = base64.b64encode(self._sign(base.encode())).decode()
        return [self._agent, ("Signature-Input", f"{LABEL}={given}"), ("Signature", f"{LABEL}=:{signature}:")]


def signer_of(settings: CrawlSettings) -> RequestSigner | None:
    """What signs the requests; None: nothing. Raises BadSigningKey, MissingExtra, BadCrawlSettings."""
    file = settings.signature.key
    return RequestSigner(read_key(Path(file).expanduser()), settings.signature_agent) if file else None
