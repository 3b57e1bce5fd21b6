"""Verifies signed requests and key directories with an implementation of RFC 9421 that is not ours."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
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
