"""A worker process: reads pages from the socket on stdin and answers each with its measures.

Frames are msgpack values: settings and model of the extractor, then pages. The first answer, b"", means "ready". If a
page hangs after the parent has died, the kernel's alarm ends the process.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import TypeVar

import msgspec

from filters.extraction.interface import ExtractError
from filters.extraction.learned.model_name import model_bytes
from filters.measure.extractors import EXTRACTORS
from filters.measure.page_measures import PageMeasures, RawPage, failed, measure, measure_raw
from filters.settings import MeasureSettings

GRACE_S = 5.0

P = TypeVar("P", bound=RawPage)
Loader = Callable[[MeasureSettings, bytes], Callable[[P], PageMeasures]]
"""From the settings and the extractor's model to what measures a page."""


def first_frame(settings: MeasureSettings) -> bytes:
    """What a worker gets first. Raises BadModel."""
    if settings.perplexity_model:
        from filters.perplexity.model import load_model  # rarely needed

        load_model(settings.perplexity_model)
    model = model_bytes(settings.extractor_model) if EXTRACTORS[settings.extractor].takes_model else b""
    return msgspec.msgpack.encode((settings, model))


def main(grace_s: float = GRACE_S) -> None:
    """Measure pages until the parent exits."""
    serve(_measuring, RawPage, grace_s)


def serve(loaded: Loader[P], page_type: type[P], grace_s: float = GRACE_S) -> None:
    """Answer pages until the parent exits, by what is `loaded` under the limits of the settings.

    The alarm ends a page `grace_s` after the parent's limit.
    """
    try:
        _serve(Connection(os.dup(0)), loaded, page_type, grace_s)
    except (EOFError, ConnectionError):  # the parent exited
        os._exit(0)


def _serve(pipe: Connection, loaded: Loader[P], page_type: type[P], grace_s: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    logging.disable(logging.CRITICAL)  # Trafilatura logs each failed page
    settings, model = msgspec.msgpack.decode(pipe.recv_bytes(), type=tuple[MeasureSettings, bytes])
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory_bytes, settings.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer = loaded(settings, model)
    gc.collect()
    gc.freeze()  # exclude the models' large lists from garbage collection
    pipe.send_bytes(b"")
    pages = msgspec.msgpack.Decoder(page_type)
    encoder = msgspec.msgpack.Encoder()
    while True:
        page = pages.decode(pipe.recv_bytes())
        signal.setitimer(signal.ITIMER_REAL, settings.time_limit_s + grace_s)
        try:
            answered = encoder.encode(answer(page))
        except MemoryError:
            answered = encoder.encode(failed(page.url, ExtractError.OUT_OF_MEMORY))
        pipe.send_bytes(answered)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _measuring(settings: MeasureSettings, model: bytes) -> Callable[[RawPage], PageMeasures]:
    if model:
        from filters.extraction.learned.model import read_model

        read_model(model, settings.extractor_model)
    # the extractor, its fallbacks and the language model are loaded now, so that no page's time limit includes it
    for sentences in (20, 1):  # the second text is so short that Trafilatura tries its fallbacks
        measure("", f"<html><body><p>{'Loaded by measuring a page. ' * sentences}</p></body></html>", "", settings)
    return partial(measure_raw, settings=settings)


if __name__ == "__main__":
    main()
