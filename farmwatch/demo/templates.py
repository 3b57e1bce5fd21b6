"""Three families of page templates, such as content-management systems give: magazine, journal and manual.

They differ in what stands around the text (menus, breadcrumbs, sidebars, author box, related links, cookie banner,
footer), in element names and in the layout of URLs. Everything inserted is escaped here, except `main`, which is HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape

Link = tuple[str, str]  # (href, text)


class Family(StrEnum):
    """Which template a site uses."""

    MAGAZINE = "magazine"
    JOURNAL = "journal"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class PageStyle:
    """What all pages of a site share."""

    host: str
    name: str
    family: Family
    author: str
    menu: Sequence[Link]


@dataclass(frozen=True, slots=True)
class PageContent:
    """What one page shows. `main` is HTML; `published` an ISO date, "" for a page that is no article."""

    path: str
    title: str
    main: str
    published: str = ""
    related: Sequence[Link] = ()
    head: str = ""


def render(look: PageStyle, page: PageContent) -> bytes:
    """The whole HTML document, UTF-8."""
    return _TEMPLATES[look.family](look, page).encode()


def article_path(family: Family, slug: str) -> str:
    """Where a family keeps its articles."""
    return {
        Family.MAGAZINE: f"/2026/04/{slug}/",
        Family.JOURNAL: f"/posts/{slug}.html",
        Family.MANUAL: f"/book/{slug}",
    }[family]


def text_html(text: str) -> str:
    """Paragraphs and `## ` headings as HTML."""
    blocks = [block.strip() for block in text.split("\n\n") if block.strip()]
    return "\n".join(
        f"<h2>{escape(block[3:])}</h2>" if block.startswith("## ") else f"<p>{escape(block, quote=False)}</p>"
        for block in blocks
    )


def links_html(links: Sequence[Link]) -> str:
    """A list of links."""
    return "<ul>" + "".join(f'<li><a href="{escape(href)}">{escape(text)}</a></li>' for href, text in links) + "</ul>"


def _document(look: PageStyle, page: PageContent, style: str, body: str) -> str:
    url = f"http://{look.host}{page.path}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(page.title)} | {escape(look.name)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta property="og:site_name" content="{escape(look.name)}">
<meta property="og:title" content="{escape(page.title)}">
<link rel="canonical" href="{escape(url)}">
{page.head}
<style>{style}</style>
</head>
{body}
</html>
"""


def _magazine(look: PageStyle, page: PageContent) -> str:
    """A WordPress-like magazine: header menu, breadcrumbs, author box, sidebar, related posts, cookie banner."""
    byline = (
        f'<div class="entry-meta">By <a href="/author/">{escape(look.author)}</a> · '
        f'<time datetime="{page.published}">{page.published}</time> · 3 min read</div>'
        if page.published
        else ""
    )
    author = (
        f'<div class="author-box"><h4>About the author</h4><p>{escape(look.author)} writes for {escape(look.name)}.</p>'
        f'<a href="/author/">All posts</a></div><div class="share"><a href="#s1">Share</a> <a href="#s2">Pin</a></div>'
        f'<section class="related-posts"><h3>You may also like</h3>{links_html(page.related)}</section>'
        if page.published
        else ""
    )
    body = f"""<body class="single postid">
<div id="cookie-notice" role="dialog"><span>We use cookies to improve your experience.</span> <button>Accept</button>
<button>Decline</button></div>
<header class="site-header"><a class="logo" href="/">{escape(look.name)}</a>
<nav class="main-navigation">{links_html(look.menu)}</nav></header>
<div class="breadcrumbs"><a href="/">Home</a> » <a href="/links">Resources</a> » <span>{escape(page.title)}</span></div>
<main id="content"><article class="post"><header class="entry-header"><h1 class="entry-title">{escape(page.title)}</h1>
{byline}</header>
<div class="entry-content">
{page.main}
</div>{author}</article></main>
<aside class="sidebar widget-area"><h3>Popular</h3>{links_html(page.related)}
<form class="newsletter"><label>Newsletter <input type="email" name="mail"></label><button>Join</button></form></aside>
<footer class="site-footer"><p>© 2026 {escape(look.name)}</p>{links_html(look.menu)}</footer>
</body>"""
    return _document(look, page, ".sidebar{float:right}.breadcrumbs{font-size:.8em}", body)


def _journal(look: PageStyle, page: PageContent) -> str:
    """A plain blog from a static-site generator: title, text, previous and next."""
    dated = f'<p class="date"><time datetime="{page.published}">{page.published}</time></p>' if page.published else ""
    onward = (
        '<div class="pager">' + "".join(f'<a href="{escape(h)}">{escape(t)}</a> ' for h, t in page.related) + "</div>"
        if page.related
        else ""
    )
    body = f"""<body>
<div class="wrap">
<div class="masthead"><a href="/">{escape(look.name)}</a></div>
<div class="nav">{" · ".join(f'<a href="{escape(href)}">{escape(text)}</a>' for href, text in look.menu)}</div>
<div class="post"><h1>{escape(page.title)}</h1>{dated}
<div class="post-body">
{page.main}
</div></div>
{onward}
<div class="footer">Written by {escape(look.author)}. Made with a static-site generator.</div>
</div></body>"""
    return _document(look, page, "body{max-width:42em;margin:auto;font-family:serif}", body)


def _manual(look: PageStyle, page: PageContent) -> str:
    """A documentation site: table of contents at the side, section element, previous and next, build line."""
    body = f"""<body>
<nav class="related" aria-label="Related"><a href="/">{escape(look.name)}</a> » {escape(page.title)}</nav>
<div class="document"><div class="bodywrapper"><div class="body" role="main"><section>
<h1>{escape(page.title)}</h1>
{page.main}
</section></div></div></div>
<div class="sphinxsidebar" role="navigation"><h3>Table of contents</h3>{links_html(look.menu)}
<h4>See next</h4>{links_html(page.related)}
<search><form action="/search"><input name="q"><button>Go</button></form></search></div>
<footer class="footer">Maintained by {escape(look.author)}. Last built {page.published or "2026-05-02"}.</footer>
</body>"""
    return _document(look, page, ".sphinxsidebar{float:left;width:15em}", body)


_TEMPLATES: dict[Family, Callable[[PageStyle, PageContent], str]] = {
    Family.MAGAZINE: _magazine,
    Family.JOURNAL: _journal,
    Family.MANUAL: _manual,
}
