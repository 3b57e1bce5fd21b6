"""Work on a hostile body that may take a second, kept off the event loop: other hosts' time limits must not suffer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Made = TypeVar("Made")


async def done(heavy: bool, work: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Made:
    """The result of `work`, done in a thread where it is `heavy`: more than the milliseconds that a thread costs."""
    if not heavy:
        return work(*given, **named)
    return await asyncio.to_thread(work, *given, **named)
