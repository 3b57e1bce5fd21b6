"""Visitors' text is never in the text that `whole-web` scores, however a page lays its posts out."""

from __future__ import annotations

from random import Random

import pytest

from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from tests.support.pages.prose import PROSE

WHOLE_WEB = load_ruleset("whole-web")
WORDS = PROSE.split()
URL = "https://site.example/forum/5"


def said(number: int, inside: str = "") -> str:
    """A visitor's paragraph, with some HTML in the middle of a sentence."""
    words = Random(number).choices(WORDS, k=60)
    return f"<p>Visitor{number} {' '.join(words[:30])} {inside} {' '.join(words[30:])}</p>"


def post(number: int, text: str, name: str = "message", more: str = "") -> str:
    return f"<div class='{name}'><b class='username'>Ann{number}</b><div class='body'>{text}</div>{more}</div>"


def visitors_scored(posts: str, first: int = 0, url: str = URL) -> list[str]:
    """The visitors from number `first` on whose text is scored, of a page with these posts."""
    html = (
        f"<html><body><h1>A thread</h1><ul><li><a href='/'>Home</a></ul><div class=thread>{posts}</div></body></html>"
    )
    features = Measurer(MeasureSettings()).measure(url, html, "site.example")
    text = judge_and_text(features, WHOLE_WEB)[1]
    words = [word for word in text.split() if word.startswith("Visitor")]
    return [word for word in words if int(word.removeprefix("Visitor")) >= first]


@pytest.mark.parametrize("count", [260, 400])
def test_all_posts_of_a_long_thread_are_its(count: int) -> None:
    """More posts than are kept are known as visitors' all the same."""
    assert visitors_scored("".join(post(number, said(number)) for number in range(count)), first=1) == []


def test_all_answers_to_a_post_are_visitors() -> None:
    """Hundreds of answers within the first post are answers."""
    answers = "".join(post(number, said(number)) for number in range(1, 230))
    assert visitors_scored(post(0, said(0), more=answers) + post(230, said(230)), first=1) == []


@pytest.mark.parametrize(
    "inside",
    [
        *("<time>2020</time>", "<button>Quote</button>", "<svg><title>smile</title></svg>", "<br>"),
        *("<video><p>No video</p></video>", "<select><option>a</select>", "<math><mi>x</mi></math>"),
        *("<object>no object</object>", "<iframe src=x>no frames</iframe>", "<x-mark>here</x-mark>", "\U0010fff0"),
    ],
)
def test_posts_whose_text_the_extractor_reads_otherwise(inside: str) -> None:
    """What stands within a sentence, and extractors leave out or keep, hides no post; nor do characters for marks."""
    assert visitors_scored("".join(post(number, said(number, inside)) for number in range(12)), first=1) == []


@pytest.mark.parametrize(
    "more",
    [
        "<a href='/search?user={0}'>Find more posts by Ann{0}</a>",
        "<div class=sig><a href='https://shop{0}.example/'>The best shop of them all</a></div>",
    ],
)
def test_links_in_posts_make_no_listing(more: str) -> None:
    """A profile or a signature in each post leads to other pages, and the posts are no teasers."""
    posts = "".join(post(number, said(number), more=more.format(number)) for number in range(12))
    assert visitors_scored(posts, first=1) == []


@pytest.mark.parametrize("url", [f"{URL}?page=2", f"{URL}/page-3", f"{URL}?start=30"])
def test_a_later_page_of_a_thread_has_no_first_post(url: str) -> None:
    """On a later page even the first post is an answer."""
    posts = "".join(post(number, "".join(said(number + 50 * part) for part in range(4))) for number in range(8))
    assert visitors_scored(posts, url=url) == []


LAYOUTS = {
    "alternating classes": "".join(post(n, said(n), f"row row{'ab'[n % 2]}") for n in range(20)),
    "alternating first classes": "".join(post(n, said(n), f"row{'ab'[n % 2]} row") for n in range(20)),
    "no class but a number": "".join(f"<div id=p{n}><b class=author>Ann</b>{said(n)}</div>" for n in range(12)),
    "head and body": "<table>"
    + "".join(f"<tr class=head><td class=author>Ann<tr class=body><td><div>{said(n)}</div>" for n in range(12))
    + "</table>",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_threads(layout: str) -> None:
    """Posts are records of one thread whatever tells one from the next."""
    assert visitors_scored(LAYOUTS[layout], first=1) == []


def test_a_smaller_group_of_visitors_is_theirs_as_well() -> None:
    """Beside teasers, which are most of the page, the comments are no text of the site."""
    teasers = "".join(
        f"<li class=card><h3><a href='/about/{n}'>About {n}</a></h3><p>{' '.join(Random(n).choices(WORDS, k=80))}</p>"
        for n in range(900, 912)
    )
    comments = "".join(f"<li class=reply>{said(n)}" for n in range(6))
    assert visitors_scored(f"<ul>{teasers}</ul><ol>{comments}</ol>") == []
