"""Verifies signed requests and key directories with an implementation of RFC 9421 that is not ours."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver, algorithms
from http_message_signatures.structures import VerifyResult

from crawler.settings import SignatureSettings
from crawler.signing.signing_key import SigningKey, make_key

AGENT = "https://crawler.example"


@dataclass
class Request:
    """A request as a verifier sees it."""

    url: str
    headers: Mapping[str, str]
    method: str = "GET"


@dataclass
class Response:
    """An answer to a request."""

    headers: Mapping[str, str]
    request: Request
    status_code: int = 200


def signature_settings(folder: Path) -> tuple[SignatureSettings, SigningKey]:
    """Settings with a new key in the folder."""
    key = make_key(folder / "visitor.pem")
    return SignatureSettings(key=str(folder / "visitor.pem")), key


def shown_of(key_file: Path, *texts: bytes) -> list[str]:
    """The encodings in which a text shows fifteen bytes or more in a row of the private key, or all of it as a number.

    Fifteen bytes from any place: Base64 and Base32 of what holds the key begin a group of theirs at one of them.
    """
    private = load_pem_private_key(key_file.read_bytes(), None)
    assert isinstance(private, Ed25519PrivateKey)
    seed = private.private_bytes_raw()
    text = b"\n".join(texts)
    unbroken = b"".join(text.split())  # lines may be wrapped
    digits = re.sub(rb"[:-]|0x", b"", unbroken).lower()
    pieces = [seed[start : start + 15] for start in range(len(seed) - 14)]
    found = [
        name
        for name, of in KEY_FORMS.items()
        if any(of(piece) in each for piece in pieces for each in (text, unbroken))
    ]
    found += ["hex"] if any(piece.hex().encode() in digits for piece in pieces) else []
    return found + [order for order in ("big", "little") if str(int.from_bytes(seed, order)).encode() in text]


KEY_FORMS: dict[str, Callable[[bytes], bytes]] = {
    "raw": bytes,
    "Base64": base64.b64encode,
    "Base64 of URLs": base64.urlsafe_b64encode,
    "Base32": base64.b32encode,
    "literal": lambda piece: repr(piece)[2:-1].encode(),
    "text": lambda piece: piece.decode("latin-1").encode(),
    "of a URL": lambda piece: quote_from_bytes(piece).encode(),
    "numbers": lambda piece: ",".join(map(str, piece)).encode(),
}


def verified_request(url: str, headers: Mapping[str, str], jwk: Mapping[str, str]) -> VerifyResult:
    """The signature of a request by this key. Raises InvalidSignature."""
    covered = ("@authority", '"signature-agent";key="sig1"')
    message = Request(url, headers)
    (result,) = _verifier([jwk]).verify(message, expect_tag="web-bot-auth", require_components=covered)
    return result


def verified_directory(
    authority: str, headers: Mapping[str, str], body: bytes, jwks: Sequence[Mapping[str, str]], label: str
) -> VerifyResult:
    """One signature of a key directory. Raises InvalidSignature."""
    message = Response(headers, Request(f"https://{authority}/.well-known/http-message-signatures-directory", {}))
    (result,) = _verifier(jwks).verify(
        message,
        expect_tag="http-message-signatures-directory",
        expect_label=label,
        require_components=('"@authority";req', "content-digest"),
        max_age=timedelta(days=90),
        body=body,
    )
    return result


def _verifier(jwks: Sequence[Mapping[str, str]]) -> HTTPMessageVerifier:
    public: dict[str, Any] = {jwk["kid"]: _public(jwk["x"]) for jwk in jwks}
    keys = MappingKeyResolver(public_keys=public, private_keys={})
    return HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=keys)


def _public(x: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4)))
