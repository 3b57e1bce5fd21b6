"""Erases the records of hosts from WARC files, in place, also from a file that a crawl is writing.

A record becomes an empty one of the same length, so that the offsets of all others stay. It belongs to a host that is
named in a URL of its headers, or in the block of a request or of our metadata; the content of other hosts' pages does
not count. A record is overwritten from its end, so that after a crash its head still names its host.
"""

from __future__ import annotations

import io
import os
import re
import struct
import uuid
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crawler.warc.file import ENDING, OPEN
from crawler.warc.reader import WarcFault, WarcRecord, records_of

_HEAD_BYTES = 4096  # written last
_LOOKED_AT_BYTES = 64 * 1024  # inflated, of a record that a crash left partly overwritten
_EMPTY = b"\x1f\x8b\x08\x10"  # the start of an empty record: gzip with a comment, which ends at a NUL (RFC 1952)


def archives_of(folder: Path) -> list[Path]:
    """The WARC files of a folder, including open ones."""
    return sorted([*folder.glob(f"*{ENDING}"), *folder.glob(f"*{ENDING}{OPEN}")])


def erase_hosts(path: Path, hosts: Collection[str]) -> int:
    """Erase the records of these hosts from a file; returns their number. A missing file has none. Raises OSError."""
    with suppress(FileNotFoundError), _opened(path, os.O_RDWR) as descriptor:
        records = list(_theirs(descriptor, hosts))
        for offset, end in records:
            empty = empty_record(end - offset)
            os.pwrite(descriptor, empty[_HEAD_BYTES:], offset + _HEAD_BYTES)
            os.fdatasync(descriptor)
            os.pwrite(descriptor, empty[:_HEAD_BYTES], offset)
        os.fdatasync(descriptor)
        return len(records)
    return 0


def names_host(path: Path, host: str) -> bool:
    """Whether a file has a record of a host. Raises OSError."""
    with suppress(FileNotFoundError), _opened(path, os.O_RDONLY) as descriptor:
        return next(_theirs(descriptor, [host]), None) is not None
    return False


def empty_record(size: int) -> bytes:
    """A gzip member of exactly this size with an empty metadata record, if there is room for one."""
    block = size
    while block > 0:
        text = _text(block)
        packed = _deflated(text)
        spare = size - len(_member(packed, text, b""))
        if spare >= 0:
            return _member(packed, text, b" " * spare)
        block += min(spare, -1)
    packed = _deflated(b"")
    return _member(packed, b"", b" " * (size - len(_member(packed, b"", b""))))


def _text(block: int) -> bytes:
    head = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\n"
        "WARC-Date: 1970-01-01T00:00:00Z\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {block}\r\n\r\n"
    )
    return head.encode() + b"\0" * block + b"\r\n\r\n"


def _deflated(text: bytes) -> bytes:
    packer = zlib.compressobj(0, zlib.DEFLATED, -15)  # stored, so that the size follows from that of the text
    return packer.compress(text) + packer.flush()


def _member(packed: bytes, text: bytes, comment: bytes) -> bytes:
    return _EMPTY + bytes(5) + b"\xff" + comment + b"\0" + packed + struct.pack("<II", zlib.crc32(text), len(text))


@contextmanager
def _opened(path: Path, mode: int) -> Iterator[int]:
    """A file of `archives_of`, also if a crawl has closed and renamed it since. Raises OSError."""
    try:
        descriptor = os.open(path, mode | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        descriptor = os.open(str(path).removesuffix(OPEN), mode | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _theirs(descriptor: int, hosts: Collection[str]) -> Iterator[tuple[int, int]]:
    """Offset and end of each record of these hosts, in the file as it is now."""
    size = os.fstat(descriptor).st_size
    names = "|".join(map(re.escape, hosts))
    in_a_url = rf"(?:://(?:[^/@\s]*@)?|^host:[ \t]*)(?:{names})(?=[/:?#>\s]|$)"
    pattern = re.compile(in_a_url, re.IGNORECASE | re.MULTILINE)
    start: int | None = None  # of a record of theirs
    with os.fdopen(os.dup(descriptor), "rb", buffering=0) as stream:
        stream.seek(0)
        for record in records_of(io.BufferedReader(stream), ("request", "metadata")):
            if record.offset >= size:
                break
            if start is not None:
                yield start, record.offset
            start = record.offset if _is_theirs(record, descriptor, pattern) else None
    if start is not None:
        yield start, size


def _is_theirs(record: WarcRecord | WarcFault, descriptor: int, pattern: re.Pattern[str]) -> bool:
    if isinstance(record, WarcRecord):
        said = "\n".join([*record.headers.values(), record.block.decode("utf-8", "replace")])
        return pattern.search(said) is not None
    head = os.pread(descriptor, _HEAD_BYTES, record.offset)
    if head.startswith(_EMPTY):  # a crash left an empty record partly written
        return True
    try:
        start = zlib.decompressobj(31).decompress(head, _LOOKED_AT_BYTES)
    except zlib.error:
        return False
    return pattern.search(start.decode("utf-8", "replace")) is not None
