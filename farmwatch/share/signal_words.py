"""The signals of a page or a site in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stream.schema.signals import SignalKind

_UNKNOWN = len(SignalKind)
_ORDER = {str(kind): place for place, kind in enumerate(SignalKind)}


def signal_words(signals: Iterable[str], pages: Mapping[str, int] | None = None) -> str:
    """Names by kind, ids in brackets, and of a site the `pages` with each: `ads adsense 7 (0123456789)`; `none`."""
    of_kind: dict[str, dict[str, list[str]]] = {}
    for signal in signals:
        kind, _, rest = signal.partition(":")
        name, _, of_id = rest.partition(":")
        ids = of_kind.setdefault(kind, {}).setdefault(name, [])
        if of_id:
            ids.append(of_id)
    kinds = sorted(of_kind, key=lambda kind: (_ORDER.get(kind, _UNKNOWN), kind))
    said = [f"{kind} {', '.join(_named(kind, *item, pages or {}) for item in of_kind[kind].items())}" for kind in kinds]
    return "; ".join(said) or "none"


def _named(kind: str, name: str, ids: list[str], pages: Mapping[str, int]) -> str:
    on = f" {pages[signal]:,}" if (signal := f"{kind}:{name}") in pages else ""
    return f"{name}{on} ({', '.join(ids)})" if ids else f"{name}{on}"
