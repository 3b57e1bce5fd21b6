"""The extractors that are compared, a row each. A tool's library is imported in the tool's own process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module as load
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from filters.measure.extractors import EXTRACTORS, extract
from filters.settings import MeasureSettings
from lab.extractor_bench.body_text import body_text

Run = Callable[[str], str | None]
"""From a page that is not empty to its text."""
MEASURED = "measure-"
"""Before the name of an extractor of `measure.extractor`, which runs as MEASURE runs it."""
_KILLED = "aside button dialog figure footer form head iframe menu nav noscript script select style svg template"


class Tool(NamedTuple):
    """An extractor. `packages` are the distributions that it needs; the first one's version is its own."""

    load: Callable[[MeasureSettings], Run]  # raises ImportError
    packages: tuple[str, ...] = ()
    is_slow: bool = False  # runs only where it is asked for

    @property
    def version(self) -> str | None:
        """None = not installed; "" = farmwatch's own."""
        try:
            return next(iter([version(package) for package in self.packages]), "")
        except PackageNotFoundError:
            return None


def _as_measure(settings: MeasureSettings) -> Run:
    return lambda html: extract(html, "", settings).text


def _trafilatura(_: object, **options: bool) -> Run:
    return partial(load("trafilatura").extract, include_comments=False, **options)


def _resiliparse(_: object) -> Run:
    options = {"preserve_formatting": True, "main_content": True, "list_bullets": False, "alt_texts": False}
    return partial(load("resiliparse.extract.html2text").extract_plain_text, comments=False, **options)


def _readability(_: object) -> Run:
    document, text_of = load("readability").Document, load("html_text").extract_text
    return lambda html: text_of(document(html).summary(html_partial=True))


def _justext(_: object) -> Run:
    justext = load("justext")
    words = justext.get_stoplist("English")
    return lambda html: "\n".join(part.text for part in justext.justext(html, words) if not part.is_boilerplate)


def _newspaper(_: object) -> Run:
    newspaper = load("newspaper")

    def run(html: str) -> str:
        article = newspaper.Article("http://page.invalid/", fetch_images=False)
        article.download(input_html=html)
        article.parse()
        return str(article.text)

    return run


def _beautiful_soup(_: object) -> Run:
    soup_of = load("bs4").BeautifulSoup

    def run(html: str) -> str:
        soup = soup_of(html, "html.parser")
        for element in soup(["script", "style", "noscript"]):
            element.decompose()
        return str(soup.get_text("\n", strip=True))

    return run


def _lxml_cleaner(_: object) -> Run:
    clean = load("lxml_html_clean").Cleaner(style=True, kill_tags=_KILLED.split(), page_structure=False).clean_html
    return lambda html: _lines(clean(_tree(html)).itertext())


def _xpath_text(_: object) -> Run:
    texts = "//body//*[not(self::script or self::style or self::noscript)]/text()"
    return lambda html: _lines(_tree(html).xpath(texts))


def _tree(html: str) -> Any:
    lxml_html = load("lxml.html")
    return lxml_html.document_fromstring(html.encode("utf-8", "replace"), lxml_html.HTMLParser(encoding="utf-8"))


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, (" ".join(text.split()) for text in texts)))


TOOLS: dict[str, Tool] = {
    **{f"{MEASURED}{name}": Tool(_as_measure, (row.extra,) * bool(row.extra)) for name, row in EXTRACTORS.items()},
    "trafilatura": Tool(_trafilatura, ("trafilatura",)),
    "trafilatura-fast": Tool(partial(_trafilatura, fast=True), ("trafilatura",)),
    "trafilatura-recall": Tool(partial(_trafilatura, favor_recall=True), ("trafilatura",)),
    "trafilatura-precision": Tool(partial(_trafilatura, favor_precision=True), ("trafilatura",)),
    "resiliparse": Tool(_resiliparse, ("resiliparse",)),
    "readability": Tool(_readability, ("readability-lxml", "html-text")),
    "rs-trafilatura": Tool(
        lambda _: lambda html: load("rs_trafilatura").extract(html).main_content, ("rs-trafilatura",)
    ),
    "boilerpipe": Tool(
        lambda _: load("boilerpy3.extractors").ArticleExtractor(raise_on_failure=False).get_content, ("boilerpy3",)
    ),
    "justext": Tool(_justext, ("justext",)),
    "goose3": Tool(
        lambda _: lambda html: load("goose3").Goose().extract(raw_html=html).cleaned_text, ("goose3",), is_slow=True
    ),
    "newspaper4k": Tool(_newspaper, ("newspaper4k",), is_slow=True),
    "bte": Tool(lambda _: body_text),
    "inscriptis": Tool(lambda _: load("inscriptis").get_text, ("inscriptis",)),
    "html-text": Tool(lambda _: load("html_text").extract_text, ("html-text",)),
    "bs4": Tool(_beautiful_soup, ("beautifulsoup4",), is_slow=True),
    "lxml-cleaner": Tool(_lxml_cleaner, ("lxml_html_clean",)),
    "xpath-text": Tool(_xpath_text),
}
"""By name; the order of the rows."""
ALL = "all"


def chosen(given: Sequence[str]) -> list[str]:
    """The names of the tools to run: those given, ALL of them, or without any all that are not slow."""
    if not given or ALL in given:
        return [name for name, tool in TOOLS.items() if given or not tool.is_slow]
    return list(dict.fromkeys(given))
