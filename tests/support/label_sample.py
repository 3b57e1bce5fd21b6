"""A sample of flips in the format of `farmwatch compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def page(number: int, **other: Any) -> dict[str, Any]:
    """A flip: odd pages are dropped by the run `strict`, even ones are let in."""
    kept, dropped = ("a", "b") if number % 2 else ("b", "a")
    failed = [{"name": "min_tokens", "value": 30.0, "op": "ge", "threshold": 50}]
    return {
        "fetch_id": f"f{number}",
        "url": f"https://s{number}.example/page",
        "site": f"s{number}.example",
        "page_id": f"p{number}",
        "kind": "out",
        "rule": "min_tokens",
        "run_a": "live",
        "run_b": "strict",
        f"verdict_{kept}": "article",
        f"verdict_{dropped}": "dropped",
        f"failed_{kept}": [],
        f"failed_{dropped}": failed,
        "text_digest": f"d{number}",
        "text": f"Text of page {number}. The garden was quiet that morning.",
        "fetched_at": 1_700_000_000_000,
        "sample": {"seed": 7, "size": 3},
        **other,
    }


def write(file: Path, *pages: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(one) + "\n" for one in pages))
    return file
