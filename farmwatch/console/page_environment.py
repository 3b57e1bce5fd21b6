"""The environment of the console's templates: their filters and global names."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from farmwatch.console.access import Access
from farmwatch.console.drawings import DRAWINGS, reason_parts, verdict_parts
from farmwatch.console.pictures import percent
from farmwatch.console.site_lists import Data
from farmwatch.console.views import SPLITS, Console
from farmwatch.explain.report import flagged_above, windows_in_words
from farmwatch.explain.rules import value_text
from farmwatch.explain.segments import page_verdict
from farmwatch.runs.comparison_words import points
from farmwatch.share.signal_words import signal_words
from farmwatch.share.site_lines import verdict_words
from scoring.rates.site_rates import is_through_segments
from stream.schema.vocabulary import SiteClass
from stream.text.wording import counted, lasting


def environment_of(access: Access, console: Console) -> Environment:
    """The environment of a console's pages."""
    environment = Environment(
        loader=PackageLoader("farmwatch.console"),
        autoescape=True,
        auto_reload=False,  # an upgrade on disk is for the next start
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "code": _code,
        "counted": counted,
        "flagged_above": flagged_above,
        "signal_words": signal_words,
        "windows_in_words": windows_in_words,
        "lasting": lasting,
        "percent": percent,
        "plain": value_text,
        "points": points,
        "through_segments": lambda row: is_through_segments(row["scored"], row["through_segments"]),
        "verdict_words": lambda row: verdict_words(row["verdict"], row["scored"]),
        "outward": outward,
        "page_verdict": page_verdict,
        "time": _time,
    }
    environment.globals |= {
        "address": _address,
        "console": console,
        "figure": _figure,
        "form_token": access.form_token,
        "reason_parts": reason_parts,
        "splits": SPLITS,
        "verdict_parts": verdict_parts,
        "verdicts": tuple(SiteClass),
    }
    return environment


def _address(path: str, fields: Data, **changed: str) -> str:
    """The path with these fields. An empty one is left out, but for a reason: pages may have none."""
    given = {name: value for name, value in (fields | changed).items() if value or (name, value) == ("why", "")}
    return f"{path}?{urlencode(given)}"


@pass_context
def _figure(context: Context, name: str) -> Markup:
    """A picture of the page, with the address of its file."""
    picture = DRAWINGS[name].draw(context["data"])
    text = '<figure>{}<figcaption><a href="/{}.svg{}" download>Save as SVG</a></figcaption></figure>'
    return Markup(text).format(picture, name, context["query"]) if picture else Markup()


def _code(text: str) -> Markup:
    """Text in which `commands` stand between backticks, as the messages of the command line have them."""
    pieces = enumerate(text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(piece) if at % 2 else piece for at, piece in pieces)


def outward(url: str, words: str = "↗") -> Markup:
    """A link to a page of the web, which gets no word of the console; "" for an address that is none."""
    try:
        is_page = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        is_page = False
    text = '<a href="{}" rel="noopener noreferrer nofollow" aria-label="{} itself">{}</a>'
    return Markup(text).format(url, url, words) if is_page else Markup()


def _time(ms: int) -> Markup:
    text = f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M} UTC" if ms else ""
    return Markup("<time>{}</time>").format(text)  # the style keeps it on one line
