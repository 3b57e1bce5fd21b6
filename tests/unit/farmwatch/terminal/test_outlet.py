"""Nobody waits for who reads: neither for one who does not, nor for one who has left."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

import pytest

from farmwatch.terminal.outlet import Outlet, outlet


class Pipe(NamedTuple):
    """Both ends of a pipe."""

    reader: TextIO
    writer: TextIO


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """An open pipe."""
    reader, writer = os.pipe()
    made = Pipe(os.fdopen(reader), os.fdopen(writer, "w"))
    yield made
    for end in made:
        with suppress(OSError):
            end.close()


def test_what_is_said_arrives_in_order(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that was said stands in the pipe when the block is over, and sys.stderr is the one it was."""
    monkeypatch.setattr(sys, "stderr", pipe.writer)
    with outlet(lambda: None) as made:
        assert sys.stderr is not pipe.writer and made is not None
        for number in range(500):
            print("line", number, file=sys.stderr)
    assert sys.stderr is pipe.writer
    assert [pipe.reader.readline() for _ in range(500)] == [f"line {number}\n" for number in range(500)]


def test_a_reader_who_leaves_is_heard_of_without_a_word(pipe: Pipe) -> None:
    """The pipe's end is seen though nothing is written, and what is written then is dropped."""
    left = threading.Event()
    made = Outlet(pipe.writer, left.set)
    made.start()
    pipe.reader.close()
    assert left.wait(20)
    made.write("to nobody")
    made.close()


def test_a_reader_of_another_stream_may_be_watched_too(pipe: Pipe) -> None:
    """Who reads the result has left: that is told, and what is said goes on to be heard."""
    reader, writer = os.pipe()
    left = threading.Event()
    made = Outlet(pipe.writer, left.set)
    made.start()
    with os.fdopen(writer, "w") as result:
        made.watch(result)
        os.close(reader)
        assert left.wait(20)
    made.write("goodbye\n")
    made.close()
    assert pipe.reader.readline() == "goodbye\n"


def test_a_reader_who_does_not_read_holds_nothing_up(pipe: Pipe) -> None:
    """Far more than a pipe holds is said and the end comes; in the pipe is the beginning of it."""
    made = Outlet(pipe.writer, lambda: None)
    made.start()
    line = "x" * 999 + "\n"
    for _ in range(5000):
        made.write(line)
    made.drain(0.1)
    assert os.read(pipe.reader.fileno(), 1000).decode() == line
    pipe.reader.close()


def test_a_disk_that_is_full_is_no_reader_who_left() -> None:
    """What finds no room on it is dropped, and nobody is told to end."""
    left = threading.Event()
    with Path("/dev/full").open("w") as full:
        made = Outlet(full, left.set)
        made.start()
        for _ in range(3):
            made.write("no room\n")
            made.drain(20)
        made.close()
    assert not left.is_set()


def test_a_stream_without_a_descriptor_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sys.stderr is none of the operating system's it stays."""
    monkeypatch.setattr(sys, "stderr", None)
    with outlet(lambda: None) as made:
        assert made is None
        assert sys.stderr is None
