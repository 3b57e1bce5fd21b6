"""The key that signs: its file, and its public form."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from crawler.errors import BadSigningKey
from crawler.signing.signing_key import SigningKey, make_key, read_key
from stream.text.user_errors import MissingExtra

# RFC 8037 appendix A.1 to A.3
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_the_public_key_is_that_of_the_rfc() -> None:
    """The JSON Web Key and its thumbprint are those of RFC 8037's example, without the private part."""
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(SEED))
    assert key.jwk == {"kty": "OKP", "crv": "Ed25519", "kid": THUMBPRINT, "x": X, "use": "sig"}


def test_a_key_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    """The file has mode 0600, is read again as the same key, and is never overwritten."""
    file = tmp_path / "key.pem"
    made = make_key(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and read_key(file).id == made.id
    with pytest.raises(FileExistsError):
        make_key(file)
    assert read_key(file).id == made.id


def test_a_key_of_openssl_is_read(tmp_path: Path) -> None:
    """The format is that of `openssl genpkey -algorithm ed25519`."""
    file = tmp_path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", file], check=True, capture_output=True)
    file.chmod(0o600)
    assert len(read_key(file).id) == 43


def _pem(private: Ed25519PrivateKey | ec.EllipticCurvePrivateKey, passphrase: bytes = b"") -> bytes:
    locked = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"s3cr3t",
        b"-----BEGIN PRIVATE KEY-----\ns3cr3t\n-----END PRIVATE KEY-----\n",
        _pem(Ed25519PrivateKey.from_private_bytes(SEED), b"s3cr3t"),
        _pem(ec.generate_private_key(ec.SECP256R1())),
    ],
    ids=["empty", "no PEM", "damaged", "passphrase", "other kind"],
)
def test_a_file_without_such_a_key_is_refused(tmp_path: Path, text: bytes) -> None:
    """The error names the file, and neither it nor its cause shows what is in it."""
    file = tmp_path / "key.pem"
    file.write_bytes(text)
    file.chmod(0o600)
    with pytest.raises(BadSigningKey) as raised:
        read_key(file)
    assert "key.pem" in str(raised.value) and "s3cr3t" not in f"{raised.value!r} {raised.value.__cause__!r}"


@pytest.mark.parametrize(
    ("mode", "is_mine", "is_refused"),
    [
        (0o604, True, True),
        (0o602, True, True),
        (0o640, True, True),
        (0o620, True, True),
        (0o600, True, False),
        (0o400, True, False),
        (0o440, False, False),
        (0o444, False, True),
    ],
)
def test_a_key_that_other_users_may_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_mine: bool, is_refused: bool
) -> None:
    """Only its owner may; of a file of another owner also the group, as where a secret is mounted."""
    make_key(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(mode)
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + (not is_mine))
    if is_refused:
        with pytest.raises(BadSigningKey):
            read_key(tmp_path / "key.pem")
    else:
        assert read_key(tmp_path / "key.pem").id


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a base install has the name of the extra."""
    make_key(tmp_path / "key.pem")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for use in (read_key, make_key):
        with pytest.raises(MissingExtra) as raised:
            use(tmp_path / "key.pem")
        assert raised.value.facts == {"extra": "signature"}


def test_a_key_does_not_show_itself(tmp_path: Path) -> None:
    """What a log or a trace could print of it has no private part."""
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(SEED))
    shown = f"{key!r} {key!s} {vars(key)!r} {key.jwk}"
    assert SEED.hex() not in shown and repr(SEED) not in shown and "nWGxne" not in shown
