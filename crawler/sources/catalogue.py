"""Sources by name, as configured."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from crawler.settings import CrawlSettings
from crawler.sources.brave import Brave
from crawler.sources.json_http import JsonHttp
from crawler.sources.keys import read_key, require_key
from crawler.sources.marginalia import Marginalia
from crawler.sources.mojeek import Mojeek
from crawler.sources.searxng import Searxng
from crawler.sources.settings import BUILT_IN, SearchSettings, SourceSettings
from crawler.sources.source import MissingKey, Source, SourceError


class UnknownSource(SourceError):
    """No source has that name. The operator uses one of the names in the message."""


def source_names(settings: SearchSettings) -> list[str]:
    """Every source that may be searched."""
    return [*BUILT_IN, *settings.json_http]


def configured(settings: SearchSettings, environment: Mapping[str, str]) -> list[str]:
    """The sources that are set up, by a table of settings or by a key in the environment."""
    blank = SearchSettings()
    return [
        name
        for name in source_names(settings)
        if name in settings.json_http
        or settings_for(settings, name) != getattr(blank, name)
        or environment.get(settings_for(settings, name).key_env)
    ]


def settings_for(settings: SearchSettings, name: str) -> SourceSettings:
    """The settings of a source. Raises UnknownSource."""
    if name in BUILT_IN:
        found: SourceSettings = getattr(settings, name)
        return found
    if name in settings.json_http:
        return settings.json_http[name]
    raise UnknownSource(f"no source is called {name[:40]!r}; there are file, {', '.join(source_names(settings))}")


def open_source(settings: SearchSettings, name: str, environment: Mapping[str, str], crawl: CrawlSettings) -> Source:
    """The source `name`, with its key. Raises MissingKey, UnknownSource."""
    mine = settings_for(settings, name)
    if not mine.url:
        example = "http://127.0.0.1:8080" if name == "searxng" else "https://…/search?q={query}"
        table = name if name in BUILT_IN else f"json_http.{name}"
        raise MissingKey(f"{name} has no address: set search.{table}.url, such as {example}")
    if name == "brave":
        return Brave(settings.brave, require_key(name, mine, environment))
    if name == "mojeek":
        return Mojeek(settings.mojeek, require_key(name, mine, environment))
    if name == "marginalia":
        return Marginalia(settings.marginalia, read_key(name, mine, environment))
    if name == "searxng":
        return Searxng(settings.searxng, _named_key(name, mine, environment))
    if name == "commoncrawl":
        from crawler.sources.commoncrawl import CommonCrawl  # it imports the WARC reader

        return CommonCrawl(settings.commoncrawl, crawl)
    return JsonHttp(name, settings.json_http[name], _named_key(f"json_http.{name}", mine, environment))


def _named_key(name: str, mine: SourceSettings, environment: Mapping[str, str]) -> str:
    """The key, required if the settings name a place for it."""
    return require_key(name, mine, environment) if mine.key_env or mine.key_file else ""


def with_pages(settings: SourceSettings, pages: int | None) -> SourceSettings:
    """The settings with another number of result pages, if one is given."""
    return settings if pages is None else msgspec.structs.replace(settings, pages=pages)
