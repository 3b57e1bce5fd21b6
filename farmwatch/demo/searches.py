"""What the demo's searches found: queries with their results, best first.

A result is a host, which stands for the host's next article, or a host with the path of one particular page: among
them what search engines do return besides articles (indexes, copies, old addresses, forbidden and missing pages).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from farmwatch.demo.site_pages import (
    DISALLOWED,
    FIRST_MONTH,
    LINK_LIST,
    LOGIN,
    NEARLY_EMPTY,
    OLD_PATH,
    REPEATED,
    TAG_INDEX,
)

SEARCHES: dict[str, tuple[str, ...]] = {
    "how to build a better morning routine": (
        "morninghabits.example",
        "tidynest.example",
        "morninghabits.example",
        "strideandthrive.example",
        "morninghabits.example" + TAG_INDEX,
        "happytailguide.example",
        "morninghabits.example" + LOGIN,
    ),
    "how often to water houseplants": (
        "blog.leafycorner.example",
        "blog.leafycorner.example",
        "tidynest.example",
        "blog.leafycorner.example" + REPEATED,
        "blog.leafycorner.example" + LINK_LIST,
    ),
    "what is compound interest": (
        "pennywisepath.example",
        "wanderlightly.example",
        "pennywisepath.example",
        "pennywisepath.example" + DISALLOWED,
        "reference.coilbook.example",
        "members.closedshelf.example/",
    ),
    "phone battery drains fast": (
        "www.gadgetgleam.example",
        "www.gadgetgleam.example",
        "www.gadgetgleam.example" + FIRST_MONTH,
    ),
    "best dog for a small apartment": (
        "happytailguide.example",
        "happytailguide.example",
        "tidynest.example",
        "happytailguide.example" + OLD_PATH,
        "blog.leafycorner.example",
        "happytailguide.example" + NEARLY_EMPTY,
    ),
    "cheap travel with a backpack": (
        "wanderlightly.example",
        "wanderlightly.example",
        "pennywisepath.example",
        "strideandthrive.example/no-such-page",
        "strideandthrive.example",
    ),
    "python exception handling explained": (
        "docs.serpentmanual.example",
        "learn.scaletrail.example",
        "reference.coilbook.example",
        "docs.serpentmanual.example",
        "www.syntaxalmanac.example",
        "archive.patientpages.example",
        "docs.serpentmanual.example" + LINK_LIST,
        "guide.objectgarden.example",
        "www.gadgetgleam.example",
        "members.closedshelf.example/",
    ),
    "difference between list and tuple": (
        "notes.hissandtell.example",
        "guide.objectgarden.example",
        "handbook.slitherandson.example",
        "www.syntaxalmanac.example",
        "notes.hissandtell.example",
        "archive.patientpages.example",
        "learn.scaletrail.example" + FIRST_MONTH,
        "docs.serpentmanual.example",
    ),
    "how do string methods work": (
        "handbook.slitherandson.example",
        "learn.scaletrail.example",
        "guide.objectgarden.example" + TAG_INDEX,
        "reference.coilbook.example",
        "www.syntaxalmanac.example" + REPEATED,
    ),
}


def hit_rows(next_article: Callable[[str], str]) -> Iterator[dict[str, object]]:
    """Rows with `query`, `rank` and `url`; `next_article` gives the path that a host alone stands for."""
    for query, results in SEARCHES.items():
        for rank, result in enumerate(results, 1):
            host, slash, path = result.partition("/")
            yield {"query": query, "rank": rank, "url": f"http://{host}{slash + path or next_article(host)}"}
