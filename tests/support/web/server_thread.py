"""A server for tests: an event loop in a thread that ends with the block."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

_PATIENCE_S = 10.0


class ServerThread:
    """A server on loopback as a context manager; subclasses implement `serve`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    async def serve(self) -> None:
        """Start listening and return; the server runs until the end of the block."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop listening. Remaining tasks are then cancelled."""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(_PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.serve())
        self._started.set()
        self.loop.run_forever()
        self.loop.run_until_complete(self.close())
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.close()
