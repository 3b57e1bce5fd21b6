"""Expiry of canary sites in a stage's state: one key per site, due at that time."""

from __future__ import annotations

from collections.abc import Iterator

from stream.processing.stage import Context

_KEY = b"\0canary\0"  # followed by the site
_SITES_AT_ONCE = 100  # of a partition in one call


def expire_canary(ctx: Context, site: str, keep_ms: int) -> None:
    """Let `site` expire after `keep_ms`; a later call postpones it."""
    ctx.state.put(_KEY + site.encode(), b"", due_at=ctx.now_ms + keep_ms)


def expired_canaries(ctx: Context) -> Iterator[str]:
    """The sites of the partition that expire now, each once; the caller deletes their data."""
    for key, _, _ in ctx.state.due(ctx.now_ms, _SITES_AT_ONCE):
        if key.startswith(_KEY):
            ctx.state.delete(key)
            yield key.removeprefix(_KEY).decode()
