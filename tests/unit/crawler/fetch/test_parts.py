"""Inflating, response headers, Retry-After."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import unicodedata
import zlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch.response_headers import clean, retry_after_s
from crawler.web.content_encoding import BadEncoding, Inflater

ENCODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "": bytes,
    "raw deflate": lambda data: zlib.compress(data)[2:-4],
}


@given(st.binary(max_size=3000), st.sampled_from(sorted(ENCODERS)), st.integers(1, 50), st.integers(0, 3000))
def test_inflating_in_pieces_up_to_a_cap(data: bytes, encoding: str, size: int, cap: int) -> None:
    """However a body is split, its beginning is kept, and `full` tells whether there was more."""
    sent = ENCODERS[encoding](data)
    if encoding == "raw deflate" and (not data or sent[0] & 0x0F == 8):
        return
    inflater = Inflater("deflate" if encoding == "raw deflate" else encoding, cap)
    for start in range(0, len(sent), size):
        inflater.feed(sent[start : start + size])
    assert inflater.body() == data[:cap]
    assert inflater.full == (len(data) > cap)


@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_a_bomb_does_not_inflate(encoding: str) -> None:
    """A small body that inflates to 300 MiB takes little more memory than the cap."""
    pack = zlib.compressobj(1, zlib.DEFLATED, 31)
    bomb = b"".join(pack.compress(bytes(1024 * 1024)) for _ in range(300)) + pack.flush()
    if encoding == "br":
        bomb = brotli.compress(bytes(100 * 1024 * 1024), quality=1)
    inflater = Inflater(encoding, 2 * 1024 * 1024)
    tracemalloc.start()
    inflater.feed(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert inflater.full and len(inflater.body()) == 2 * 1024 * 1024
    assert peak < 16 * 1024 * 1024


def test_gzip_members_and_padding() -> None:
    """A body of several gzip members is one body; zeros after the last are padding."""
    inflater = Inflater("gzip", 100)
    inflater.feed(gzip.compress(b"one ") + gzip.compress(b"two") + bytes(8))
    assert inflater.body() == b"one two"


def inflated(encoding: str, sent: bytes, size: int = 0, cap: int = 100_000) -> tuple[bytes, bool]:
    """The body that was sent in pieces of a size (0: whole), and whether it is cut."""
    inflater = Inflater(encoding, cap)
    size = size or len(sent) or 1
    for start in range(0, len(sent), size):
        inflater.feed(sent[start : start + size])
    return inflater.body(), inflater.cut_short


NOISE = random.Random(3).randbytes(3000)
CODED = gzip.compress(NOISE.hex().encode())


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize(
    ("encoding", "sent"),
    [("zstd", NOISE), ("compress", NOISE), ("utf-8, zstd", NOISE), ("utf-8", CODED), ("gzip", NOISE),
     ("deflate", CODED), ("br", CODED), ("gzip, br", CODED),
     ("gzip", CODED[:60] + b"a damaged stream" * 30), ("gzip," * 6, b"text")],
)  # fmt: skip
def test_bad_encodings_are_named(encoding: str, sent: bytes, size: int) -> None:
    """A body that is neither encoded as it says nor text, or has more than five codings, raises BadEncoding."""
    with pytest.raises(BadEncoding):
        inflated(encoding, sent, size)


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=1500),
    st.sampled_from(["gzip", "x-gzip", "deflate", "br", "utf-8", "none", "text/html", "aws-chunked", "gzip, gzip",
                     "deflate, br", "br, deflate", "none, gzip"]),
    st.integers(0, 40),
)  # fmt: skip
def test_text_that_is_not_encoded_is_taken_as_sent(text: str, encoding: str, size: int) -> None:
    """Whatever the header says, and however the body is split: text that is no compressed stream is the body."""
    body = ("<p>" + text).encode()
    assert inflated(encoding, body, size) == (body, False)


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize(
    ("encoding", "times"),
    [("gzip", 1), ("x-gzip", 1), (" GZIP ,", 1), ("identity, gzip", 1), ("gzip, gzip", 1), ("gzip, gzip", 2),
     ("gzip, utf-8", 1), ("utf-8, gzip", 1), ("gzip, gzip, gzip", 3)],
)  # fmt: skip
def test_codings_in_a_list(encoding: str, times: int, size: int) -> None:
    """Codings are undone from the last to the first; one that was not applied, or is no coding, does not count."""
    body = b"<p>" + NOISE.hex().encode()
    sent = body
    for _ in range(times):
        sent = gzip.compress(sent)
    assert inflated(encoding, sent, size) == (body, False)
    assert inflated(encoding, sent[:-20], size)[1]


def test_a_bomb_in_a_bomb_does_not_inflate() -> None:
    """Of stacked codings, too, no more is decoded than the cap asks for."""
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)))
    tracemalloc.start()
    assert inflated("gzip, gzip", bomb, cap=1000) == (bytes(1000), True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1024 * 1024


def test_retry_after() -> None:
    """Seconds and dates are read; a past date means now; invalid values mean none."""
    assert retry_after_s("120", 0) == 120.0
    assert retry_after_s("Thu, 01 Jan 1970 00:01:00 GMT", 10) == 50.0
    assert retry_after_s("Thu, 01 Jan 1970 00:01:00 GMT", 100) == 0.0
    assert retry_after_s("9" * 400, 0) is not None
    for nonsense in ("", "soon", "-5", "1.5", "٣"):
        assert retry_after_s(nonsense, 0) is None


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"nginx", "nginx"),
        ("größe".encode(), "größe"),
        (b"caf\xe9", "café"),
        (b" a\0\t\x1b[31mb\x7f ", "a [31mb"),
        (b"\x80", ""),
        ("a\u202eb\u2028c".encode(), "a b c"),
    ],
)
def test_headers_as_they_are_kept(sent: bytes, kept: str) -> None:
    """Header values: UTF-8 is kept, other bytes are read as ISO-8859-1, and control characters become spaces."""
    assert clean(sent.decode("utf-8", "surrogateescape"), 100) == kept


@given(st.one_of(st.binary(max_size=50).map(lambda b: b.decode("utf-8", "surrogateescape")), st.text(
    st.characters(exclude_categories=()), max_size=50)), st.integers(0, 60))  # fmt: skip
def test_whatever_was_sent_can_be_kept(text: str, cap: int) -> None:
    """Any string can be stored: without control characters, within the cap, and unchanged when stored again."""
    kept = clean(text, cap)
    assert kept.encode().decode() == kept and len(kept) <= cap
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in kept)
    assert clean(kept, cap) == kept


@pytest.mark.parametrize("encoding", ["utf-8", "none", "binary, 8bit", "text/html", "identity", ",", "utf-8," * 9])
@pytest.mark.parametrize("body", [b"<p>\x0bwords</p>", NOISE, b"\0", b""])
def test_a_word_that_is_no_coding_says_nothing(encoding: str, body: bytes) -> None:
    """Any body under such a header is the body as sent, also one with control bytes."""
    for size in (0, 1, 7):
        assert inflated(encoding, body, size) == (body, False)
