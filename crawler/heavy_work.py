"""Work on a hostile body that may take a second, kept off the event loop: other hosts' time limits must not suffer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_BYTES = 32 * 1024  # less costs the loop milliseconds at most, about what a thread does

Given = ParamSpec("Given")
Made = TypeVar("Made")


async def in_thread(size: int, work: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Made:
    """The result of `work`, done in a thread where the body at hand, of `size` bytes, is not small."""
    if size <= _BYTES:
        return work(*given, **named)
    return await asyncio.to_thread(work, *given, **named)
