"""The key directory of a site, and its own signature: proof that the keys are of this site and no copy from another.

By draft-ietf-webbotauth-httpsig-protocol: a JSON Web Key Set at PATH, and a signature of each key over the authority
and the digest of the content (RFC 9530). A web server that only serves files can send them, as headers that do not
change until they expire.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from crawler.signing.request_signer import EARLIER_S, Header
from crawler.signing.signing_key import SigningKey

PATH = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE = "application/http-message-signatures-directory+json"
_VALID_S = 90 * 86_400
_COVERED = '("@authority";req "content-digest")'


class KeyDirectory(NamedTuple):
    """The content to serve at PATH, and its headers until `expires` (seconds, UTC)."""

    body: bytes
    headers: list[Header]
    expires: int


def key_directory(keys: Sequence[SigningKey], authority: str, now_s: float) -> KeyDirectory:
    """The directory of the site at `authority` with these keys, of which each signs it."""
    body = msgspec.json.format(msgspec.json.encode({"keys": [key.jwk for key in keys]}), indent=2) + b"\n"
    digest = f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
    expires = int(now_s) + _VALID_S
    given, signatures = [], []
    for number, key in enumerate(keys, 1):
        parameters = (
            f'{_COVERED};created={int(now_s) - EARLIER_S};expires={expires};keyid="{key.id}";alg="ed25519"'
            ';tag="http-message-signatures-directory"'
        )
        base = f'"@authority";req: {authority}\n"content-digest": {digest}\n"@signature-params": {parameters}'
        given.append(f"sig{number}={parameters}")
        signatures.append(f"sig{number}=:{base64.b64encode(key.sign(base.encode())).decode()}:")
    headers = [
        ("Content-Type", MEDIA_TYPE),
        ("Cache-Control", "max-age=86400"),
        ("Content-Digest", digest),
        ("Signature-Input", ", ".join(given)),
        ("Signature", ", ".join(signatures)),
    ]
    return KeyDirectory(body, headers, expires)
