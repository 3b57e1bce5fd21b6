"""The labels file: append-only, synced after each label, one writer at a time."""

from __future__ import annotations

import codecs
import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from farmwatch.labels.judgements import Judgement, latest_judgements
from stream.log.private_folders import give_to_owner
from stream.text.user_errors import FarmwatchError

_OPENING = b'{"fetch_id":'  # every line written here begins like this
T = TypeVar("T")


class _Line(msgspec.Struct):
    fetch_id: str | None = None
    site: str = ""


class LabelsFile:
    """A labels file, open for appending; it holds the file's lock until `close`.

    `latest` has the valid judgements by fetch id and person, the last one last, without their texts.
    """

    def __init__(self, file: Path) -> None:
        """Open or create it, and read its content. An incomplete last line after a crash is cut off.

        Lines of another origin, such as {label, text}, stay unchanged. Raises FarmwatchError for a file that cannot be
        opened, that another process has open, or that has other content than labels.
        """
        self.file = file
        self.latest: dict[tuple[str, str], Judgement] = {}
        try:
            self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FarmwatchError(f"{file}: cannot be written: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                raise FarmwatchError(f"{file}: is no file that can keep labels: name another one with --out")
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise FarmwatchError(
                    f"{file}: another `farmwatch review label` adds to it: wait for it, or name another file with --out"
                ) from error
            self._read()
        except BaseException:
            os.close(self._fd)
            raise

    def add(self, said: Judgement) -> None:
        """Append a judgement, which is on disk on return. Raises FarmwatchError, and then nothing is added."""
        line = memoryview(msgspec.json.encode(said) + b"\n")
        before = os.fstat(self._fd).st_size
        try:
            while line:
                line = line[os.write(self._fd, line) :]
            os.fsync(self._fd)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, before)
            raise FarmwatchError(f"{self.file}: the last answer was not kept: {error.strerror}") from error
        self.latest.pop((said.fetch_id, said.by), None)
        if said.page_type:
            self.latest[said.fetch_id, said.by] = msgspec.structs.replace(said, text="")

    def of(self, by: str) -> dict[str, Judgement]:
        """The valid judgements of a person by fetch id."""
        return {fetch_id: said for (fetch_id, who), said in self.latest.items() if who == by}

    def forget(self, is_forgotten: Callable[[str], bool]) -> None:
        """Remove the lines of these sites, with their texts; an interruption leaves the file as it was."""
        with self.file.open("rb") as lines:
            kept = [line for line in lines if not is_forgotten(_decoded(line, _Line).site)]
        temporary = self.file.with_name(f"{self.file.name}.new")
        with temporary.open("wb") as stream:
            os.fchmod(stream.fileno(), stat.S_IMODE(os.fstat(self._fd).st_mode))
            stream.writelines(kept)
            stream.flush()
            os.fsync(stream.fileno())
        give_to_owner(temporary)
        temporary.replace(self.file)

    def close(self) -> None:
        os.close(self._fd)

    def _read(self) -> None:
        judgements: list[Judgement] = []
        end = 0
        with os.fdopen(os.dup(self._fd), "rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    self._mend(line, number, end)
                elif line.strip():
                    try:
                        if _decoded(line, _Line).fetch_id is not None:
                            judgements.append(msgspec.structs.replace(_decoded(line, Judgement), text=""))
                    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                        raise self._no_label(number, str(error)) from error
                end += len(line)
        self.latest = {(said.fetch_id, said.by): said for said in latest_judgements(judgements)}

    def _mend(self, line: bytes, number: int, begins: int) -> None:
        """Handle a last line without an end: cut off after a kill, or written by hand."""
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            _decoded(line, _Line)
            raise self._no_label(number, "its line has no end: add a newline")
        if not line.startswith(_OPENING) and not _OPENING.startswith(line):
            raise self._no_label(number, "it is no JSON object")
        os.ftruncate(self._fd, begins)

    def _no_label(self, number: int, reason: str) -> FarmwatchError:
        return FarmwatchError(
            f"{self.file}: line {number} is no label: {reason}; mend it, or name another file with --out"
        )


def _decoded(line: bytes, kind: type[T]) -> T:
    """The object of a line; the first may begin with the byte order mark that Windows editors write."""
    return msgspec.json.decode(line.removeprefix(codecs.BOM_UTF8), type=kind)
