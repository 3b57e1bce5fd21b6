"""`farmwatch crawl key`: the key, the directory for the site, and what shows nothing of the key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stream.text.user_errors import Exit
from tests.support.front_door import Ran, Runner
from tests.support.web.signed import shown_of, verified_directory

CONTACT = ("--set", "crawl.contact=https://crawler.example/about")
NAME = "http-message-signatures-directory"
KEYS = [  # as they are pasted
    "-----BEGIN PRIVATE KEY-----s3cr3ts3cr3t",
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=",
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g",
]


def _headers(ran: Ran) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in ran.out.splitlines())


def test_a_key_and_its_directory_are_made(farmwatch: Runner, tmp_path: Path) -> None:
    """The file to serve verifies under the printed headers, as the file for nginx has; the key can be set."""
    ran = farmwatch("crawl", "key", "visitor.pem", "--new", *CONTACT)
    assert ran.code == Exit.OK and "visitor.pem" in ran.err
    assert f"https://crawler.example/.well-known/{NAME}" in ran.err
    body, headers = (tmp_path / ".well-known" / NAME).read_bytes(), _headers(ran)
    assert verified_directory("crawler.example", headers, body, json.loads(body)["keys"], "sig1")
    nginx = (tmp_path / ".well-known" / f"{NAME}.nginx").read_text()
    assert all(value in nginx for value in headers.values())
    assert farmwatch("doctor", "config", *CONTACT, "--set", "crawl.signature.key=visitor.pem").code == Exit.OK


def test_a_key_is_kept_and_joined_by_another(farmwatch: Runner, tmp_path: Path) -> None:
    """A second run renews the directory; a new key is added beside the old one; a key named twice is there once."""
    farmwatch("crawl", "key", "old.pem", "--new", *CONTACT)
    before = (tmp_path / "old.pem").read_bytes(), (tmp_path / ".well-known" / NAME).read_bytes()
    assert farmwatch("crawl", "key", "old.pem", *CONTACT).code == Exit.OK
    assert ((tmp_path / "old.pem").read_bytes(), (tmp_path / ".well-known" / NAME).read_bytes()) == before
    ran = farmwatch("crawl", "key", "new.pem", "old.pem", "--new", "--out", "site", *CONTACT)
    body = (tmp_path / "site" / NAME).read_bytes()
    keys = json.loads(body)["keys"]
    assert len(keys) == 2 and keys[1] == json.loads(before[1])["keys"][0]
    for label in ("sig1", "sig2"):
        assert verified_directory("crawler.example", _headers(ran), body, keys, label)
    (tmp_path / "copy.pem").write_bytes((tmp_path / "old.pem").read_bytes())
    (tmp_path / "copy.pem").chmod(0o600)
    farmwatch("crawl", "key", "old.pem", "old.pem", "copy.pem", *CONTACT)
    assert len(json.loads((tmp_path / ".well-known" / NAME).read_bytes())["keys"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("visitor.pem", "--new", "--set", "crawl.contact=a@b.example"), Exit.USAGE),
        (("visitor.pem", "--new"), Exit.USAGE),
        (("visitor.pem", *CONTACT), Exit.USAGE),
        (("visitor.pem", "nowhere.pem", "--new", *CONTACT), Exit.USAGE),
        (("nowhere/visitor.pem", "--new", *CONTACT), Exit.UNAVAILABLE),
        ((".well-known/visitor.pem", "--new", *CONTACT), Exit.USAGE),
        (("site/keys/visitor.pem", "--new", "--out", "site", *CONTACT), Exit.USAGE),
    ],
    ids=["mail address", "no contact", "no key", "no other key", "no folder", "served", "served below"],
)
def test_what_cannot_be_made_is_told(farmwatch: Runner, tmp_path: Path, arguments: tuple[str, ...], code: Exit) -> None:
    """A mistyped name, or a key that the site would serve: one line, no new key and no directory."""
    ran = farmwatch("crawl", "key", *arguments)
    assert ran.code == code and ran.err.strip() and not (tmp_path / ".well-known").exists()
    assert not list(tmp_path.rglob("*.pem"))


def test_a_key_is_not_made_over_another(farmwatch: Runner, tmp_path: Path) -> None:
    """`--new` for a file that exists is refused and changes neither it nor the directory."""
    farmwatch("crawl", "key", "visitor.pem", "--new", *CONTACT)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert farmwatch("crawl", "key", "visitor.pem", "--new", *CONTACT).code == Exit.USAGE
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_served_key_is_refused_by_a_link_too(farmwatch: Runner, tmp_path: Path) -> None:
    """A link in the served folder, or the key there under another name, or as one of the others."""
    farmwatch("crawl", "key", "visitor.pem", "--new", "--out", "site", *CONTACT)
    (tmp_path / "site" / "link.pem").symlink_to(tmp_path / "visitor.pem")
    (tmp_path / "site" / "kept.pem").write_bytes((tmp_path / "visitor.pem").read_bytes())
    (tmp_path / "site" / "kept.pem").chmod(0o600)
    (tmp_path / "kept.pem").symlink_to(tmp_path / "site" / "kept.pem")
    for files in (["site/link.pem"], ["kept.pem"], ["visitor.pem", "kept.pem"]):
        assert farmwatch("crawl", "key", *files, "--out", "site", *CONTACT).code == Exit.USAGE, files


def test_nothing_shows_the_key(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Not the settings, the doctor or a backup, even if the key lies in the folder of the log."""
    folder = Path(finished.removeprefix("sqlite:"))
    file = folder / "visitor.pem"
    farmwatch("crawl", "key", str(file), "--new", *CONTACT)
    options = (*CONTACT, "--set", f"crawl.signature.key={file}", "--log", finished)
    for command in (("doctor", "config"), ("doctor", "--deploy"), ("crawl", "--dry-run"), ("log", "backup", "kept")):
        ran = farmwatch(*command, *options)
        assert ran.out + ran.err and not shown_of(file, ran.out.encode(), ran.err.encode()), command
    made = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert made
    assert not any(shown_of(file, path.read_bytes()) or path.name == file.name for path in made)


@pytest.mark.parametrize("is_from_file", [False, True])
@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_place_of_its_file_is_not_repeated(
    farmwatch: Runner, tmp_path: Path, key: str, is_from_file: bool
) -> None:
    """The configuration is refused without the text, also where a path would be joined to the folder of the file."""
    (tmp_path / "own.toml").write_text(f'[crawl.signature]\nkey = "{key}"\n')
    given = ("--config", tmp_path / "own.toml") if is_from_file else ("--set", f"crawl.signature.key={key}")
    for command in (["doctor", "config"], ["doctor", "--deploy"]):
        ran = farmwatch(*command, *given)
        assert ran.code == Exit.USAGE and "the path of a file" in ran.err
        assert not any(key[at : at + 8] in ran.out + ran.err for at in range(len(key) - 8))


def test_a_key_that_others_may_read_fails_the_doctor(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """The check of the crawl says as whom it signs, or names the file and the command that closes it."""
    farmwatch("crawl", "key", "visitor.pem", "--new", *CONTACT)
    signed = ("--set", "crawl.signature.key=visitor.pem", "--log", finished)
    assert "signed as https://crawler.example" in farmwatch("doctor", *CONTACT, *signed).out
    (tmp_path / "visitor.pem").chmod(0o640)
    ran = farmwatch("doctor", *CONTACT, *signed)
    assert ran.code == Exit.PROBLEM and "chmod go= visitor.pem" in ran.out
