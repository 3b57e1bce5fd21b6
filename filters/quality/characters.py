"""A table with the kind of each code point, to look up a whole text at once."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

VISIBLE = 1  # not white space for `str.split`; the number of white space is 0
WORDLIKE = 2  # neither white space nor in PUNCTUATION; a token that contains one is a word
ALPHABETIC = 4  # `str.isalpha`: a letter of any script
SYMBOL = 8  # # or an ellipsis character: DOLMa's symbols
CODE_SHIFT = 8  # a number holds the code point above the eight bits of its kind
_WRITTEN = 0x40000  # code points of the planes with letters and white space; the others have tags and private use


def _characters(ranges: str) -> frozenset[str]:
    bounds = [part.split("-") for part in ranges.split()]
    return frozenset(chr(code) for bound in bounds for code in range(int(bound[0], 16), int(bound[-1], 16) + 1))


TERMINAL_PUNCTUATION = _characters(
    "21 2e 3f 589 61d-61f 6d4 700-702 7f9 837 839 83d-83e 964-965 104a-104b 1362 1367-1368 166e 1735-1736 17d4-17d6"
    " 17d9-17da 1803 1809 1944-1945 1aa8-1aab 1b5a-1b5b 1b5e-1b5f 1b7d-1b7e 1c3b-1c3c 1c7e-1c7f 203c-203d 2047-2049"
    " 2e2e 2e3c 2e53-2e54 3002 a4ff a60e-a60f a6f3 a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f aaf0-aaf1 abeb"
    " fe52 fe56-fe57 ff01 ff0e ff1f ff61 10a56-10a57 10f55-10f59 10f86-10f89 11047-11048 110be-110c1 11141-11143"
    " 111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 1144b-1144c 115c2-115c3 115c9-115d7 11641-11642"
    " 1173c-1173e 11944 11946 11a42-11a43 11a9b-11a9c 11c41-11c42 11ef7-11ef8 11f43-11f44 16a6e-16a6f 16af5"
    " 16b37-16b38 16b44 16e98 1bc9f 1da88"
)
"""Sentence terminators of all scripts, as in datatrove 0.10: 156 characters of Unicode's property Sentence_Terminal
(PropList.txt; later versions have more), and three Khmer signs."""

PUNCTUATION = TERMINAL_PUNCTUATION | _characters(
    "0-8 b-1f 22-2d 2f 3a-3e 40 5b-60 7b-9f ab b4 bb 2013-2014 2019 201c-201e 2026 2236 2501 25ba 3001 3008-300d"
    " 3010-3011 ff05 ff08-ff09 ff0c ff11 ff1a-ff1b ff5e"
)
"""Characters that do not make a token a word: terminators, ASCII and other punctuation, control characters."""


@cache
def table() -> npt.NDArray[np.uint32]:
    """The table: code point -> code << CODE_SHIFT | kind; 0 for white space. Built once (.05 s)."""
    written = np.arange(_WRITTEN, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    numbers: npt.NDArray[np.uint32] = np.arange(0x110000, dtype=np.uint32) << np.uint32(CODE_SHIFT)
    numbers |= VISIBLE | WORDLIKE
    numbers[:_WRITTEN] |= np.fromiter(map(str.isalpha, written), bool, _WRITTEN) * np.uint32(ALPHABETIC)
    numbers[[ord(character) for character in PUNCTUATION]] &= ~np.uint32(WORDLIKE)
    numbers[[ord(character) for character in "#…"]] |= SYMBOL
    numbers[:_WRITTEN][np.fromiter(map(str.isspace, written), bool, _WRITTEN)] = 0
    return numbers


def numbers_of(text: str) -> npt.NDArray[np.uint32]:
    """The numbers of a text's characters in the table."""
    return table().take(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4"))
