"""The names of the structure measures, in the order of a features record. Imports no library."""

from __future__ import annotations

from collections.abc import Mapping

Measures = Mapping[str, float | None]

BLANKS = b" \n\t\r"
"""White space, which no measure of bytes counts."""

UNSEEN = ("noscript", "script", "style", "template", "title")
"""Elements whose text a reader does not see on the page."""

TAG_RATIOS: dict[str, tuple[str, ...]] = {
    "link": ("a",),
    "paragraph": ("p",),
    "div": ("div",),
    "span": ("span",),
    "item": ("li",),
    "cell": ("td",),
    "image": ("img",),
    "heading": ("h1", "h2", "h3", "h4", "h5", "h6"),
    "emphasis": ("b", "em", "i", "strong"),
    "code": ("code", "pre"),
    "break": ("br",),
    "article": ("article",),
    "figure": ("figure",),
    "field": ("button", "input", "select", "textarea"),
}
"""Name of a tag ratio -> its elements."""

MEANINGS: dict[str, str] = {
    "page_bytes": "bytes of visible text, UTF-8 without white space",
    "main_share": "bytes of the main text / page_bytes",
    "anchor_share": "bytes in links / page_bytes",
    "paragraph_share": "bytes in p elements / page_bytes",
    "paragraph_bytes": "mean bytes of p elements",
    "hidden_share": "bytes in hidden blocks / page_bytes",
    "script_only": "1 for a page with scripts and less than 200 bytes of visible text",
    "needs_script": "1 if a noscript element asks for JavaScript",
    **{
        f"{name}_ratio": f"{' '.join(tags)} elements per 1,000 bytes of visible text"
        for name, tags in TAG_RATIOS.items()
    },
    "forms": "form elements",
    "password_fields": "password fields",
    "links": "links",
    "title_words": "words of the title",
    "h1_words": "words of the first h1",
    "h1_in_title": "words of the first h1 that are in the title / its words",
    "record_count": "blocks of the most frequent tag and class, if there are at least 3",
    "record_share": "bytes in these blocks / page_bytes",
    "record_bytes": "mean bytes of these blocks",
    "meta_date": "1 if a meta element has a date of publication",
    "jsonld_date": "1 if JSON-LD has a date of publication",
    "time_elements": "time elements",
    "url_date": "1 if the URL has year and month",
    "meta_author": "1 if a meta element names an author",
    "jsonld_author": "1 if JSON-LD names an author",
    "byline": "1 if a class, rel or itemprop names an author or a byline",
    "jsonld_article": "1 if a type of JSON-LD is an article",
    "jsonld_forum": "1 if a type of JSON-LD is a discussion or a page of questions",
    "jsonld_product": "1 if a type of JSON-LD is a product or an offer",
    "jsonld_listing": "1 if a type of JSON-LD is a job, an event, a property or a place",
    "jsonld_collection": "1 if a type of JSON-LD is a list of items or of search results",
    "jsonld_service": "1 if a type of JSON-LD is a service or an application",
    "og_article": "1 if og:type is an article",
    "og_website": "1 if og:type is website",
    "og_product": "1 if og:type is a product",
    "og_article_dated": "1 if og:type is an article and its date of publication is given, so not every page says it",
    "noindex": "1 if a robots meta element says noindex",
    "path_depth": "segments of the URL's path",
    "slug_chars": "characters of the last segment of the URL's path",
    "slug_words": "words of at least two letters in the last segment",
    "slug_digits": "digits in the last segment",
    "page_code_share": f"bytes in {' and '.join(TAG_RATIOS['code'])} elements / page_bytes",
}
"""Measure -> what it is. Unknown (None): shares and ratios without text, parts that the page lacks."""

MEASURES = tuple(MEANINGS)
"""Names of the measures, in the order of a features record; append only, never reorder."""
