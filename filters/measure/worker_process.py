"""A worker process: reads pages from stdin, writes what was measured to stdout, one at a time, until stdin ends.

Frames are a 4-byte big-endian length and a msgpack value: the settings, then pages; b"" says that the worker is ready.
Should a page hang when the parent is gone, the kernel's alarm ends the process.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import struct
from typing import BinaryIO

import msgspec

from filters.extraction.interface import ExtractError
from filters.measure.page_measures import RawPage, failed, measure, measure_raw
from filters.settings import MeasureSettings

LENGTH = struct.Struct(">I")
_GRACE_S = 5.0  # after the parent's limit, which acts first as long as there is a parent


def main() -> None:
    """Serve pages until stdin ends."""
    requests = os.fdopen(os.dup(0), "rb", closefd=True)
    answers = os.fdopen(os.dup(1), "wb", closefd=True)
    os.dup2(2, 1)  # nothing that a library prints may end up between the frames
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    logging.disable(logging.CRITICAL)  # Trafilatura logs each page that it gives up
    first = _read(requests)
    if first is None:
        return
    settings = msgspec.msgpack.decode(first, type=MeasureSettings)
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory_bytes, settings.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _load(settings)
    _write(answers, b"")
    pages = msgspec.msgpack.Decoder(RawPage)
    encoder = msgspec.msgpack.Encoder()
    while (frame := _read(requests)) is not None:
        page = pages.decode(frame)
        signal.setitimer(signal.ITIMER_REAL, settings.time_limit_s + _GRACE_S)
        try:
            answer = encoder.encode(measure_raw(page, settings))
        except MemoryError:
            answer = encoder.encode(failed(page.url, ExtractError.OUT_OF_MEMORY))
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(answers, answer)


def _load(settings: MeasureSettings) -> None:
    """Load the extractor, its fallbacks and the language model before the first page, so that no page's time pays."""
    for sentences in (20, 1):  # too short for its own rules, the second one tries Trafilatura's fallbacks
        measure("", f"<html><body><p>{'Loaded by measuring a page. ' * sentences}</p></body></html>", "", settings)
    gc.collect()
    gc.freeze()  # the models' lists of 100,000 entries would be walked by every full collection


def _read(requests: BinaryIO) -> bytes | None:
    head = requests.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    frame = requests.read(length)
    return frame if len(frame) == length else None


def _write(answers: BinaryIO, frame: bytes) -> None:
    try:
        answers.write(LENGTH.pack(len(frame)) + frame)
        answers.flush()
    except BrokenPipeError:  # the parent is gone
        os._exit(0)


if __name__ == "__main__":
    main()
