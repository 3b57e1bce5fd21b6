"""Crawls that sign, over real HTTP: what a site needs to verify them, and what the logs of their processes show.

The site is an independent implementation of RFC 9421: it knows the request, and asks the operator's site for the keys.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from crawler.signing.key_directory import PATH
from crawler.signing.signing_key import make_key
from farmwatch.__main__ import run
from farmwatch.terminal import messages
from stream.text.user_errors import Exit
from tests.support.paths import ROOT
from tests.support.web.forward_proxy import ForwardProxy
from tests.support.web.loopback import Reply, Web, page
from tests.support.web.signed import KEY_FORMS, shown_of, verified_directory, verified_request

HOST = "crawler.example"
# `farmwatch` with all that can be logged, by asyncio and the HTTP client too
_DEBUG = """
import functools, logging, sys
from farmwatch.terminal import messages
logging.basicConfig(level=logging.DEBUG)
messages.start_logging = functools.partial(messages.start_logging, "debug")
from farmwatch.__main__ import run
"""
_BREAKS = """
from crawler.signing.request_signer import RequestSigner
def headers(self, authority):
    raise RuntimeError(vars(self))
RequestSigner.headers = headers
"""
_RUN = "sys.exit(run(sys.argv[1:]))"


@pytest.fixture
def web() -> Iterator[Web]:
    """A site with two pages."""
    with Web() as served:
        served.routes |= {"a.test/1": page("x"), "a.test/2": page("y")}
        yield served


def farmwatch(folder: Path, *arguments: str, code: str = _DEBUG + _RUN) -> subprocess.CompletedProcess[bytes]:
    """A process with its log at level debug."""
    env = {**os.environ, "PYTHONASYNCIODEBUG": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments, "--set", f"crawl.contact=https://{HOST}/about"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=120, check=False)


def crawl(
    folder: Path, web: Web, key: str, hit: str = "1", code: str = _DEBUG + _RUN, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """A crawl of one page to its end, signed with a key."""
    return farmwatch(folder, *crawling(folder, web, key, hit, **more), code=code)


def crawling(folder: Path, web: Web, key: str, hit: str = "1", **more: str) -> list[str]:
    """The arguments of that crawl."""
    (folder / "hits.txt").write_text(f"http://a.test/{hit}\n")
    settings = {
        "crawl.signature.key": key,
        **{f"crawl.{name}": value for name, value in more.items()},
        "crawl.resolve_to": f'{{"*" = "{web.target}"}}',
        "crawl.delay_s": "0.05",
        "crawl.domain_delay_s": "0",
        "crawl.address_delay_s": "0",
        "crawl.retry_s": "0.05",
        "crawl.ask_tdmrep": "false",
        "crawl.use_sitemaps": "false",
        "metrics.port": "0",
        "log.partitions": "1",
    }
    flags = [part for item in settings.items() for part in ("--set", "=".join(item))]
    return ["crawl", "--until-done", "--allow-private", "--hits", "hits.txt", *flags]


def asked_keys(web: Web) -> dict[str, dict[str, str]]:
    """The keys of the operator's site by id, each of which has signed the directory that it serves."""
    request = urllib.request.Request(f"http://{web.target}{PATH}", headers={"Host": HOST})
    with urllib.request.urlopen(request) as answer:
        body, headers = answer.read(), dict(answer.headers)
    keys = json.loads(body)["keys"]
    for number, key in enumerate(keys, 1):
        assert verified_directory(HOST, headers, body, keys, f"sig{number}").parameters["keyid"] == key["kid"]
    return {key["kid"]: key for key in keys}


def serve_directory(web: Web, folder: Path) -> None:
    """Serve it by what the file for nginx says."""
    said = (folder / ".well-known" / f"{PATH.rpartition('/')[2]}.nginx").read_text()
    headers = dict(re.findall(r"add_header (\S+) '(.*)' always;", said))
    headers["Content-Type"] = re.findall(r"default_type (\S+);", said)[0]
    web.routes[f"{HOST}{PATH}"] = Reply((folder / PATH[1:]).read_bytes(), headers=headers)


def verify_all(web: Web, since: int) -> set[str]:
    """Verify each request to the site since then by the keys asked for; the ids of those that signed."""
    keys = asked_keys(web)
    signed = [seen for seen in web.seen[since:] if seen.host == "a.test"]
    found = set()
    for seen in signed:
        (of,) = re.findall(r'keyid="([^"]+)"', seen.headers["Signature-Input"])
        assert seen.headers["Signature-Agent"] == f'sig1="https://{HOST}"'
        assert verified_request(f"http://{seen.host}{seen.path}", seen.headers, keys[of])
        found.add(of)
    return found


def test_a_site_verifies_a_crawl_by_the_directory_before_and_after_a_rotation(tmp_path: Path, web: Web) -> None:
    """Both keys are in the served directory, which each signs; the crawl changes from one to the other at a restart."""
    assert farmwatch(tmp_path, "crawl", "key", "old.pem", "--new").returncode == Exit.OK
    assert farmwatch(tmp_path, "crawl", "key", "new.pem", "old.pem", "--new").returncode == Exit.OK
    serve_directory(web, tmp_path)
    used = []
    for key, hit in (("old.pem", "1"), ("new.pem", "2")):
        before = len(web.seen)
        ran = crawl(tmp_path, web, key, hit)
        assert ran.returncode == Exit.OK, ran.stderr.decode()
        assert f"/{hit}" in [seen.path for seen in web.seen[before:]]
        used.append(verify_all(web, before))
    assert len(used[0]) == len(used[1]) == 1 and used[0] | used[1] == set(asked_keys(web))


def test_the_log_of_a_signing_crawl_does_not_show_its_key(tmp_path: Path, web: Web) -> None:
    """At level debug, asyncio's own log included, and with the trace of a signature that fails."""
    key = tmp_path / "visitor.pem"
    make_key(key)
    good = crawl(tmp_path, web, "visitor.pem")
    assert good.returncode == Exit.OK and b"DEBUG:asyncio" in good.stderr and "/1" in web.paths("a.test")
    bad = crawl(tmp_path, web, "visitor.pem", "2", _DEBUG + _BREAKS + _RUN)
    assert b"fetch_broke" in bad.stderr and b"RuntimeError: {'_sign'" in bad.stderr and "/2" not in web.paths("a.test")
    assert shown_of(key, good.stdout, good.stderr, bad.stdout, bad.stderr) == []


def test_the_log_of_a_crawl_through_a_proxy_does_not_show_its_password(tmp_path: Path, web: Web) -> None:
    """Neither where a tunnel is made nor where it is refused; through it the site gets the signed request."""
    make_key(tmp_path / "visitor.pem")
    password = "h@sh-of-many-words"
    shown = (password, quote(password, safe=""), base64.b64encode(f"ann:{password}".encode()).decode())
    for refuses, hit in ((0, "1"), (403, "2")):
        with ForwardProxy(web.target, refuses) as proxy:
            url = f"http://ann:{shown[1]}@127.0.0.1:{proxy.port}"
            ran = crawl(tmp_path, web, "visitor.pem", hit, proxy=url)
        said = (ran.stdout + ran.stderr).decode()
        assert ran.returncode == Exit.OK and b"DEBUG:asyncio" in ran.stderr and not any(text in said for text in shown)
        assert proxy.headers[0]["Proxy-Authorization"] == f"Basic {shown[2]}"
        assert (f"/{hit}" in web.paths("a.test")) is (not refuses) and ("proxy_refused" in said) is bool(refuses)


def _locked(key: Path) -> bytes:
    private = load_pem_private_key(key.read_bytes(), None)
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hush"))


def _raw(key: Path) -> bytes:
    private = load_pem_private_key(key.read_bytes(), None)
    assert isinstance(private, Ed25519PrivateKey)
    return private.private_bytes_raw()


BAD: dict[str, Callable[[Path], bytes]] = {
    "raw": _raw,
    "hex": lambda key: _raw(key).hex().encode(),
    "no PEM": lambda key: key.read_bytes().split(b"\n")[1],
    "cut": lambda key: key.read_bytes()[:-8],
    "damaged": lambda key: key.read_bytes().replace(b"MC4CAQ", b"MC4CAA"),
    "other kind": lambda key: key.read_bytes().replace(b"PRIVATE", b"RSA PRIVATE"),
    "passphrase": _locked,
}


@pytest.mark.parametrize("fault", [*BAD, "open", "folder", "missing", "unreadable"])
def test_the_error_of_a_key_file_does_not_show_the_key(
    tmp_path: Path, web: Web, fault: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The crawl ends before it asks for anything, names the file, and shows nothing of what is in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(messages, "start_logging", partial(messages.start_logging, "debug"))
    good, file = tmp_path / "good.pem", tmp_path / "visitor.pem"
    make_key(good)
    if fault == "folder":
        file.mkdir()
    elif fault == "unreadable":
        file.symlink_to(file)  # as root reads whatever its mode
    elif fault != "missing":
        file.write_bytes(BAD[fault](good) if fault in BAD else good.read_bytes())
        file.chmod(0o644 if fault == "open" else 0o600)
    code = run([*crawling(tmp_path, web, "visitor.pem"), "--set", f"crawl.contact=https://{HOST}/about"])
    out, err = capfdbinary.readouterr()
    assert code not in (Exit.OK, Exit.PROBLEM) and b"visitor.pem" in err and web.seen == []
    assert b"Traceback" not in err and shown_of(good, out, err) == []
    assert b"hush" not in err


@pytest.mark.parametrize("form", [*KEY_FORMS, "hex", "PEM", "big", "little"])
def test_a_key_in_a_log_would_be_found(tmp_path: Path, form: str) -> None:
    """The search of these tests finds a part of a key in each encoding, and in the text of its file."""
    key = tmp_path / "visitor.pem"
    make_key(key)
    seed = _raw(key)
    assert shown_of(key, make_key(tmp_path / "other.pem").id.encode()) == []
    if form in KEY_FORMS:
        shown = KEY_FORMS[form](seed[7:31])
    else:
        number = {"big": str(int.from_bytes(seed, "big")), "little": str(int.from_bytes(seed, "little"))}
        shown = {"hex": seed[7:31].hex().upper(), "PEM": repr(key.read_text()), **number}[form].encode()
    assert shown_of(key, b"level=debug key=" + shown + b" end")
