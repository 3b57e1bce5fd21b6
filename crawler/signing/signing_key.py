"""The Ed25519 key that signs requests: its file, and its public form as a JSON Web Key (RFC 8037)."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from crawler.errors import BadSigningKey
from stream.text.user_errors import MissingExtra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_MOST_BYTES = 64 * 1024  # of a key file


class SigningKey:
    """A private key. It has no representation that shows it."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self.sign = private.sign
        self._public = private.public_key().public_bytes_raw()

    @cached_property
    def jwk(self) -> dict[str, str]:
        """The public key as a JSON Web Key, named by its thumbprint."""
        return {"kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": _base64url(self._public), "use": "sig"}

    @cached_property
    def id(self) -> str:
        """The thumbprint of the public key (RFC 7638, RFC 8037 appendix A.3): SHA-256 of its members in order."""
        members = msgspec.json.encode({"crv": "Ed25519", "kty": "OKP", "x": _base64url(self._public)})
        return _base64url(hashlib.sha256(members).digest())


def read_key(file: Path) -> SigningKey:
    """The key of a PEM file (PKCS #8), as `make_key` and `openssl genpkey -algorithm ed25519` write it.

    Raises MissingExtra, and BadSigningKey for a file that is missing, that others may read, or that holds no such key.
    A group may read the file of another user: so secrets are mounted where the process is not root.
    """
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        with file.open("rb") as opened:
            state = os.fstat(opened.fileno())
            if stat.S_IMODE(state.st_mode) & (0o077 if state.st_uid == os.geteuid() else 0o007):
                raise BadSigningKey(f"{file}: other users may read this key", case="open", file=file)
            text = opened.read(_MOST_BYTES)
    except OSError as error:
        raise BadSigningKey(f"{file}: {error.strerror}") from None
    try:
        private = load_pem_private_key(text, None)
    except (ValueError, TypeError):  # no PEM, damaged, or with a passphrase; the cause may quote the text
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise BadSigningKey(f"{file}: holds no Ed25519 key in PEM without a passphrase")
    return SigningKey(private)


def make_key(file: Path) -> SigningKey:
    """Make a key in a new file that only its owner may read. Raises MissingExtra, FileExistsError, OSError."""
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
        made.write(text)
    return SigningKey(private)


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401  # an extra
    except ImportError as error:
        raise MissingExtra("signed requests need cryptography", extra="signature") from error


def _base64url(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).decode().rstrip("=")
