"""The peer is-it-slop as a pipe: lines of {id, text} in, {id, p_llm} out. Runs in an environment that has only it."""

from __future__ import annotations

import json
import sys

from is_it_slop import is_this_slop_batch


def main() -> None:
    """Score all lines of standard input."""
    lines = [json.loads(line) for line in sys.stdin]
    for start in range(0, len(lines), 64):
        batch = lines[start : start + 64]
        for line, found in zip(batch, is_this_slop_batch([line["text"] for line in batch]), strict=True):
            print(json.dumps({"id": line["id"], "p_llm": found.ai_probability}))


if __name__ == "__main__":
    main()
