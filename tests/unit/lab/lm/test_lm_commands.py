"""`farmwatch lab lm` and `farmwatch lab clean`, on small files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from filters.perplexity.model import Formula, load_model
from filters.perplexity.names import DANGER
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.pages.labelled_folder import add_page

CORPUS = (
    "The dog barks at the cat.\nThe cat sees the dog. The dog runs!\n",
    "the dog barks at 12 cats\nthe dog barks at 7 birds\n",
)


def _trained(farmwatch: Runner, folder: Path, *more: str) -> Path:
    corpus = folder / "corpus"
    (corpus / "b").mkdir(parents=True, exist_ok=True)
    (corpus / "a.txt").write_text(CORPUS[0])
    (corpus / "b" / "c.txt").write_text(CORPUS[1])
    result = farmwatch("lab", "lm", "train", str(corpus), "--out", str(folder / "out"), "--licence", "CC0-1.0", *more)
    assert result.code == Exit.OK, result.err
    (model,) = (folder / "out").iterdir()
    return model


def test_train(farmwatch: Runner, tmp_path: Path) -> None:
    """A model has the counts of the corpus as shares, is named by its digest, and has a card; twice it is the same."""
    path = _trained(farmwatch, tmp_path)
    model = load_model(str(path))
    card = model.card
    assert (card.corpus, card.licence, card.words, card.sentences) == ("corpus", "CC0-1.0", 26, 5)
    # words that come twice or more: the dog barks at cat NUMBER; and <s>
    assert model.ngrams[0] == 7
    # .8 B + .2 U(history) + 1e-6: the begins 5 of 5 sentences, of 26 words; dog follows 5 of 7 times
    expected = (0.8 * 1 + 0.2 * 5 / 26 + 1e-6) * (0.8 * 5 / 7 + 0.2 * 7 / 26 + 1e-6)
    (perplexity,) = model.surprisals("The dog", Formula.PUBLISHED).perplexities()
    assert perplexity == pytest.approx(expected**-0.5, rel=1e-3)
    assert _trained(farmwatch, tmp_path) == path


def test_train_trigrams_and_prune(farmwatch: Runner, tmp_path: Path) -> None:
    """Trigrams are counted too; of all n-grams those are kept that save most bits, with their beginnings."""
    every = load_model(str(_trained(farmwatch, tmp_path / "all", "--order", "3"))).ngrams
    few = load_model(str(_trained(farmwatch, tmp_path / "few", "--order", "3", "--ngrams", "3"))).ngrams
    assert len(every) == 3 and few[0] == every[0] and few[1] == 3 and 0 < few[2] <= 3


def test_too_little_text(farmwatch: Runner, tmp_path: Path) -> None:
    """A corpus without words that repeat, n-grams to keep, or files is refused, and nothing is written."""
    (tmp_path / "short.txt").write_text("only once")
    result = farmwatch(
        "lab", "lm", "train", str(tmp_path / "short.txt"), "--out", str(tmp_path / "out"), "--licence", "x"
    )
    assert result.code == Exit.PROBLEM and "too little text" in result.err and not (tmp_path / "out").exists()
    (tmp_path / "short.txt").write_text("a\nb\na\nb\nc\na a\nb b\n")
    arguments = ["--out", str(tmp_path / "out"), "--licence", "x", "--ngrams", "1"]
    result = farmwatch("lab", "lm", "train", str(tmp_path / "short.txt"), *arguments)
    assert result.code == Exit.PROBLEM and "too little text" in result.err and not (tmp_path / "out").exists()
    (tmp_path / "empty").mkdir()
    result = farmwatch("lab", "lm", "train", str(tmp_path / "empty"), "--out", str(tmp_path / "out"), "--licence", "x")
    assert result.code == Exit.USAGE and "no file" in result.err


def _labelled(folder: Path) -> Path:
    html = "<html><body><ul><li>Zwq plm<li>Xkj vbn</ul><p>The president said that he would not sign the bill.</p>"
    add_page(folder, "web", html, articleBody="The president said that he would not sign the bill.")
    add_page(folder, "web", "<p>no label</p>")
    return folder


def test_calibrate(farmwatch: Runner, tmp_path: Path) -> None:
    """The limit is chosen at which the texts are nearest to the labelled ones; the danger is named."""
    labels = str(_labelled(tmp_path / "pages"))
    found = json.loads(farmwatch("lab", "lm", "calibrate", labels, "--json").out)
    assert found["best"]["f1"] == 1 and found["best"]["limit"] == 160_000  # the highest of those alike
    assert found["curve"][-1] == {"limit": None, "f1": pytest.approx(20 / 24), "sentences": 0, "chars": 0}
    said = farmwatch("lab", "lm", "calibrate", labels, "--formula", "published")
    assert said.code == Exit.OK and DANGER in said.out and ": --limit" in said.out


def test_clean(farmwatch: Runner, tmp_path: Path) -> None:
    """Files and folders become texts without the sentences above the limit, in the same folders."""
    pages = tmp_path / "pages"
    (pages / "deep").mkdir(parents=True)
    (pages / "deep" / "a.html").write_text("<nav>Zwq plm</nav><p>He said that he would not sign the bill.</p>")
    (pages / "b.txt").write_text("He would not go. Qwz xkv!\n")
    result = farmwatch("lab", "clean", str(pages), "--out", str(tmp_path / "out"), "--limit", "9000")
    assert result.code == Exit.OK, result.err
    assert (tmp_path / "out/deep/a.html.txt").read_text() == "He said that he would not sign the bill."
    assert (tmp_path / "out/b.txt").read_text() == "He would not go."
    assert "2 texts, without 2 of 4 sentences" in result.out and DANGER in result.out


def test_clean_refusals(farmwatch: Runner, tmp_path: Path) -> None:
    """Two files with one place, and a text in place of its file, are refused before anything is written.

    A file that is not there, or no text, is skipped.
    """
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.txt").write_text("He would not go.")
    out = str(tmp_path / "out")
    result = farmwatch("lab", "clean", str(tmp_path / "a"), str(tmp_path / "b"), "--out", out)
    assert result.code == Exit.USAGE and "both would be written" in result.err
    assert farmwatch("lab", "clean", str(tmp_path / "a"), "--out", out, "--limit", "inf").code == Exit.USAGE
    result = farmwatch("lab", "clean", str(tmp_path / "none.txt"), str(tmp_path / "a"), "--out", out)
    assert result.code == Exit.PROBLEM and "none.txt: No such file" in result.err
    assert (tmp_path / "out/same.txt").read_text() == "He would not go."
    (tmp_path / "a/same.txt").write_text("Qwz xkv vbq.")
    (tmp_path / "a/picture").write_bytes(b"\x89PNG")
    result = farmwatch("lab", "clean", str(tmp_path / "a"), "--out", str(tmp_path / "a"))
    assert result.code == Exit.USAGE and "would be written over" in result.err
    assert (tmp_path / "a/same.txt").read_text() == "Qwz xkv vbq."
    result = farmwatch("lab", "clean", str(tmp_path / "a"), "--out", out)
    assert result.code == Exit.PROBLEM and "picture: no text in UTF-8" in result.err
    assert (tmp_path / "out/same.txt").read_text() == "" and not (tmp_path / "out/picture.txt").exists()
    (tmp_path / "empty").mkdir()
    assert "no file in it" in farmwatch("lab", "clean", str(tmp_path / "empty"), "--out", out).err


def test_clean_units(farmwatch: Runner, tmp_path: Path) -> None:
    """A page can go as a whole; the main text can be taken in place of all text."""
    (tmp_path / "a.txt").write_text("Qwz xkv vbq.\nHe said.")
    farmwatch(
        "lab", "clean", str(tmp_path / "a.txt"), "--out", str(tmp_path / "out"), "--unit", "page", "--limit", "500"
    )
    assert (tmp_path / "out/a.txt").read_text() == ""
    words = " ".join(["He said that he would not sign the bill."] * 20)
    (tmp_path / "b.html").write_text(f"<body><nav><a href='/'>He said</a></nav><article><p>{words}</p></article>")
    farmwatch("lab", "clean", str(tmp_path / "b.html"), "--out", str(tmp_path / "out"), "--text", "main")
    assert (tmp_path / "out/b.html.txt").read_text() == words
