from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.errors import BadModel
from filters.model_file import digest_of
from filters.perplexity.model import load_model, read_model, shipped_model
from filters.perplexity.model_file import decoded, encode
from tests.support.small_ngrams import BIGRAMS, CARD, TRIGRAMS, WORDS, tables_of

TABLES = tables_of(WORDS, BIGRAMS, TRIGRAMS)
DATA = encode(TABLES)


def _written(folder: Path, data: bytes) -> Path:
    path = folder / f"{digest_of(data)}.ngrams"
    path.write_bytes(data)
    return path


def test_file_is_named_by_its_digest(tmp_path: Path) -> None:
    """A model is found by a path, from a folder on, and has the digest of its name and its card."""
    path = _written(tmp_path, DATA)
    model = load_model(path.name, tmp_path)
    assert f"{model.digest}.ngrams" == path.name and model.card == CARD and model.ngrams == (5, 4, 2)
    assert model.surprisals("The dog.").units.tolist() == read_model(DATA, "").surprisals("The dog.").units.tolist()


def test_bytes_of_an_ngram() -> None:
    """An n-gram has 12 bytes; the header of a file is small."""
    assert len(DATA) - 12 * (5 + 4 + 2) < 500
    assert sum(shipped_model().ngrams) > 400_000


def test_name_and_content_differ(tmp_path: Path) -> None:
    """A file that was changed, or has another name, is refused in words."""
    path = _written(tmp_path, DATA)
    path.write_bytes(DATA[:-1] + b"\x01")
    with pytest.raises(BadModel, match="damaged or changed"):
        load_model(str(path))
    with pytest.raises(BadModel, match=r"name of its digest, DIGEST\.ngrams"):
        load_model("model.bin")


def test_what_is_no_file(tmp_path: Path) -> None:
    """What is not there, empty, a folder, a pipe or a device is refused, without waiting."""
    names = [tmp_path / f"{number:016x}.ngrams" for number in range(5)]
    names[1].touch()
    names[2].mkdir()
    os.mkfifo(names[3])
    names[4].symlink_to("/dev/zero")
    for name, said in zip(names, ("No such file", "empty", "regular|directory", "regular", "regular"), strict=True):
        with pytest.raises(BadModel, match=said):
            load_model(str(name))


@pytest.mark.parametrize("data", [b"", b"fwngrams", pickle.dumps(print), b"PK\x03\x04", b"\x7fELF" * 99, DATA[8:]])
def test_foreign_content(data: bytes) -> None:
    """Another kind of file is refused; nothing in it runs."""
    with pytest.raises(BadModel, match=r"no n-gram model|cut off"):
        read_model(data, "there")


@pytest.mark.parametrize("length", [11, 12, 100, len(DATA) - 1])
def test_cut_off(length: int) -> None:
    """A part of a file is refused, and so is more than a file."""
    with pytest.raises(BadModel, match="cut off"):
        read_model(DATA[:length], "there")
    with pytest.raises(BadModel, match="cut off, or damaged"):
        read_model(DATA + b"\0", "there")


def test_other_version() -> None:
    """A file of another version says so."""
    with pytest.raises(BadModel, match="version 9 of a model, this farmwatch reads 1"):
        read_model(DATA.replace(b'"version":1', b'"version":9'), "there")


def _changed(**fields: object) -> bytes:
    return encode(TABLES._replace(header=msgspec.structs.replace(TABLES.header, **fields)))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (_changed(counts=(5, 4)), "in place of"),
        (_changed(counts=(1 << 40, 4, 2)), "too many"),
        (_changed(counts=(5, 0, 6)), "no words and bigrams"),
        (_changed(counts=(11,)), "no words and bigrams"),
        (_changed(unknown=1.5), "unknown words"),
        (_changed(unknown=0.5), "do not sum to 1"),
        (_changed(unknown=5e-324), "unknown words"),
        (_changed(unseen=0.0), "unknown words"),
        (DATA.replace(b'"unknown"', b'"unknowm"'), "damaged in its header"),
    ],
)
def test_damaged_header(data: bytes, said: str) -> None:
    """A header whose numbers do not fit is refused before any table is read by it."""
    with pytest.raises(BadModel, match=said):
        read_model(data, "there")


def _with(part: str, order: int, values: object) -> bytes:
    arrays: Any = [*getattr(TABLES, part)]
    arrays[order] = np.array(values, arrays[order].dtype)
    return encode(TABLES._replace(keys=arrays) if part == "keys" else TABLES._replace(shares=arrays))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (_with("keys", 0, [1, 2, 3, 4, 5]), "no sentence starts"),
        (_with("keys", 1, TABLES.keys[1][::-1]), "do not rise"),
        (_with("keys", 1, [*TABLES.keys[1][:-1], 99 << 32]), "a word that is not in it"),
        (_with("keys", 1, [*TABLES.keys[1][:-1], 4 << 32 | 99]), "a word that is not in it"),
        (_with("keys", 2, [0, 4 << 32]), "a word that is not in it"),
        (_with("shares", 0, [0.2, 0.2, 0.2, 0.2, 0.9]), "do not sum to 1"),
        (_with("shares", 1, [1, 1, 1, 1]), "begin alike sum to more than 1"),
        (_with("shares", 2, [0.5, 0]), "not above 0"),
        (_with("shares", 2, [0.5, float("nan")]), "not above 0"),
        (_with("shares", 1, [0.5, float("inf"), 0.1, 0.1]), "not above 0"),
    ],
)
def test_hostile_tables(data: bytes, said: str) -> None:
    """Keys and shares that no training gives are refused in words."""
    with pytest.raises(BadModel, match=said):
        read_model(data, "there")


@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, len(DATA) - 1), value=st.integers(0, 255))
def test_any_changed_byte(place: int, value: int) -> None:
    """Whatever byte is changed, a model is refused with BadModel, or gives every sentence a surprisal above 0."""
    data = bytearray(DATA)
    data[place] = value
    try:
        model = read_model(bytes(data), "there")
    except BadModel:
        return
    assert (model.surprisals("The dog barks 7 times. Zebra!").units >= 0).all()


def test_tables_are_views() -> None:
    """The tables are views of the file's content: the memory of a model is that of its file."""
    tables = decoded(DATA, "there")
    arrays: Any = (*tables.keys, *tables.shares)
    assert not any(array.flags.owndata for array in arrays)
