"""A folder of labelled pages, written by a test."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import zstandard


def add_page(folder: Path, source: str, html: str, **fields: object) -> str:
    """Add a page with the fields of its label to a source; returns its id."""
    ident = hashlib.sha256(html.encode()).hexdigest()
    (folder / source / "html").mkdir(parents=True, exist_ok=True)
    (folder / source / "html" / f"{ident}.html.zst").write_bytes(zstandard.compress(html.encode()))
    with (folder / source / "gold.jsonl").open("a") as gold:
        gold.write(json.dumps({"id": ident, **fields}) + "\n")
    return ident
