"""Content-defined chunks: exact Rabin fingerprints, six bits of them at a time.

Bytes are read as polynomials over GF(2): bit k of a number is the coefficient of x^k, addition is XOR. A window
w = b_0 … b_31 (b_0 the oldest) has the fingerprint

    fp(w) = sum_j b_j * x^(8 * (31 - j))  mod P,    P = 0x3DA3358B4DC173, irreducible, of degree 53

(M. O. Rabin, "Fingerprinting by random polynomials", 1981; cut points by A. Muthitacharoen, B. Chen and D. Mazières,
"A low-bandwidth network file system", SOSP 2001). A chunk ends after byte i when it has at least 32 bytes and the
lowest six bits of the fingerprint of its last 32 bytes are zero, or when it has 1024 bytes, or at the end: after about
94 bytes.

Why no rolling hash is needed: reduction modulo P is linear over GF(2), and so is taking six of 53 bits, hence

    fp(w) & 63 = T_0[b_0] ^ T_1[b_1] ^ … ^ T_31[b_31],    T_j[b] = (b * x^(8 * (31 - j)) mod P) & 63

with 32 tables of 256 entries. Eight of them are looked up at once, as the bytes of one 64-bit number: four look-ups of
all positions' bytes, XORed with shifts by 8, 16 and 24 positions, give a number at each position whose byte j belongs j
positions before; three more XORs, with shifts by 4, 2 and 1 positions, bring the eight bytes together. Nothing is
carried from byte to byte. And since the shortest chunk is as long as the window, a window never reaches back over a
cut, so the positions do not depend on the cuts before them: after an insertion the cuts fall into step again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

POLYNOMIAL = 0x3DA3358B4DC173
WINDOW = 32
MASK = 63
MIN_BYTES = 32
MAX_BYTES = 1024
_STEP = 8 * 1024  # positions at a time: the arrays stay in the second-level cache


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of a text in order: `ids` xxh3-64 of each chunk's bytes (see `chunk`), `lengths` in bytes."""

    ids: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint16]


def fingerprint(window: bytes) -> int:
    """All 53 bits of the Rabin fingerprint of `window`, by polynomial division; slow, for tests and tables."""
    value = int.from_bytes(window, "big")
    degree = POLYNOMIAL.bit_length()
    while (excess := value.bit_length() - degree) >= 0:
        value ^= POLYNOMIAL << excess
    return value


def _tables() -> npt.NDArray[np.uint64]:
    """Row k, column b: the numbers T_8k[b] to T_8k+7[b] packed into one number, the first as the lowest byte."""
    packed = np.zeros((WINDOW // 8, 256), np.uint64)
    values = list(range(256))  # of the youngest byte, in full
    for j in reversed(range(WINDOW)):
        packed[j // 8] |= np.array([(value & MASK) << (8 * (j % 8)) for value in values], np.uint64)
        values = [fingerprint(value.to_bytes(8, "big") + b"\0") for value in values]
    return packed


_TABLES = _tables()


def cuts(data: bytes) -> list[int]:
    """End offset of every chunk, ascending."""
    ends: list[int] = []
    start = 0
    for candidate in (*_zero_ends(data), len(data)):
        while candidate - start > MAX_BYTES:
            start += MAX_BYTES
            ends.append(start)
        if candidate - start >= MIN_BYTES:
            start = candidate
            ends.append(start)
    if start < len(data):
        ends.append(len(data))
    return ends


def chunk(text: bytes) -> Chunks:
    """Cut UTF-8 `text` into chunks with ids."""
    ends = cuts(text)
    pieces = (text[start:end] for start, end in zip([0, *ends], ends, strict=False))
    ids = np.fromiter(map(xxhash.xxh3_64_intdigest, pieces), np.uint64, len(ends))
    lengths = np.diff(np.array(ends, np.int64), prepend=0).astype(np.uint16)
    return Chunks(ids, lengths)


def _zero_ends(data: bytes) -> list[int]:
    """Offsets just after each window whose fingerprint ends in six zero bits."""
    ends: list[int] = []
    for base in range(0, len(data) - WINDOW + 1, _STEP):
        window_bytes = min(_STEP + WINDOW - 1, len(data) - base)
        piece = np.frombuffer(data, np.uint8, window_bytes, base).astype(np.intp)
        count = window_bytes - WINDOW + 8
        sums = _TABLES[0].take(piece[:count])
        for row in range(1, WINDOW // 8):
            sums ^= _TABLES[row].take(piece[8 * row : 8 * row + count])
        for shift in (4, 2, 1):
            later = sums[shift:] >> np.uint64(8 * shift)
            sums = np.bitwise_xor(later, sums[:-shift], out=later)
        ends.extend((np.flatnonzero(sums.astype(np.uint8) == 0) + (base + WINDOW)).tolist())
    return ends
