"""Human prose from Python's own documentation.

The sources are the chapters of `pydoc_data.topics` (a language reference: long, even, impersonal) and the docstrings of
the standard library, both by the Python Software Foundation's contributors. No training text has their register.
"""

from __future__ import annotations

import ast
import re
import sysconfig
from pathlib import Path

_PAGE_WORDS = 300
_MIN_DOCSTRING_WORDS = 150
_MIN_PARAGRAPH_WORDS = 12
_FOLDERS = ("", "asyncio", "collections", "concurrent/futures", "email", "http", "importlib", "json", "logging", "os")


def reference_pages() -> list[str]:
    """The prose of Python's language reference in pages of 300 words; empty if Python lacks it."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        return []
    words = [word for topic in topics.values() for word in _prose(topic)]
    return [
        " ".join(words[start : start + _PAGE_WORDS]) for start in range(0, len(words) - _PAGE_WORDS + 1, _PAGE_WORDS)
    ]


def docstrings() -> list[str]:
    """Docstrings of at least 150 words of every second module of the standard library, by module name."""
    found: list[str] = []
    stdlib = Path(sysconfig.get_path("stdlib"))
    for path in (module for folder in _FOLDERS for module in sorted((stdlib / folder).glob("*.py"))[::2]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="replace"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                if len(text.split()) >= _MIN_DOCSTRING_WORDS:
                    found.append(text)
    return found


def _prose(document: str) -> list[str]:
    """Words of the paragraphs at the left margin, without code, tables and headings."""
    words: list[str] = []
    for paragraph in re.split(r"\n\s*\n", document):
        first = paragraph.lstrip("\n")[:1]
        if first.isalpha() and len(paragraph.split()) >= _MIN_PARAGRAPH_WORDS and "::=" not in paragraph:
            words += paragraph.split()
    return words
