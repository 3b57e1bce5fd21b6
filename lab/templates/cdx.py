"""The index of a WARC file, next to it: CDX with a legend line (9 or 11 fields), or CDXJ.

An index saves a full read of the archive. One that is older than its archive, or has a line of another form, is not
used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from stream.text.packed_files import DamagedFile, bounded_lines, open_packed

_LINE_CAP_BYTES = 64 * 1024
_ARCHIVE = re.compile(r"(\.warc)?(\.gz)?$")
_UNKNOWN = ("", "-", "unk")
_FIELDS = {"a": "url", "b": "time", "m": "mime", "s": "status", "V": "offset", "v": "offset", "g": "filename"}


class Indexed(NamedTuple):
    """A record of an archive by its index. `mime` and `status` may be empty."""

    url: str
    at_ms: int
    offset: int
    mime: str
    status: str


class BadIndex(ValueError):
    """An index is stale or unreadable: the archive is read instead."""


def index_of(archive: Path) -> Path | None:
    """The index file of an archive; None if there is none."""
    stem = _ARCHIVE.sub("", archive.name)
    for name in dict.fromkeys((archive.name, archive.name.removesuffix(".gz"), stem)):
        for ending in (".cdxj", ".cdx", ".cdxj.gz", ".cdx.gz"):
            if (file := archive.with_name(name + ending)).is_file():
                return file
    return None


def read_index(index: Path, archive: Path) -> Iterator[Indexed]:
    """The records of an archive. Raises BadIndex, also after some."""
    columns: list[str] = []
    try:
        size, changed_at = archive.stat().st_size, archive.stat().st_mtime
        if index.stat().st_mtime < changed_at:
            raise BadIndex("it is older than the archive")
        with open_packed(index) as stream:
            for number, line in enumerate(bounded_lines(stream, _LINE_CAP_BYTES), start=1):
                text = line.decode("utf-8", "replace").strip()
                if text.startswith("CDX "):
                    columns = [_FIELDS.get(letter, "") for letter in text.split()[1:]]
                elif text and not text.startswith("!"):
                    try:
                        record, name = _record(text, columns)
                    except (ValueError, KeyError, msgspec.MsgspecError) as error:
                        raise BadIndex(f"line {number} has another form") from error
                    if name not in ("", archive.name):
                        continue
                    if not 0 <= record.offset < size:
                        raise BadIndex(f"line {number} has an offset outside the archive")
                    yield record
    except (OSError, DamagedFile) as error:
        raise BadIndex(str(error)) from error


def _record(line: str, columns: list[str]) -> tuple[Indexed, str]:
    """The record of a line, and the name of its archive. Raises ValueError and KeyError."""
    if columns:
        fields = dict(zip(columns, line.split(" "), strict=True))
    else:
        _, time, data = line.split(" ", 2)
        fields = {name: str(value) for name, value in msgspec.json.decode(data, type=dict[str, str | int]).items()}
        fields["time"] = time
    at = datetime.strptime(fields["time"], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    mime, status = ("" if (value := fields.get(name, "")) in _UNKNOWN else value for name in ("mime", "status"))
    record = Indexed(fields["url"], int(at.timestamp() * 1000), int(fields["offset"]), mime, status)
    return record, Path(fields.get("filename", "")).name
