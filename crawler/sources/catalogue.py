"""Sources by name, as configured, with their keys.

A key comes from the environment or a file. It is never in the configuration, and never in a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crawler.settings import CrawlSettings
from crawler.sources.brave import Brave
from crawler.sources.json_http import JsonHttp
from crawler.sources.marginalia import Marginalia
from crawler.sources.mojeek import Mojeek
from crawler.sources.searxng import Searxng
from crawler.sources.settings import BUILT_IN, SearchSettings, SourceSettings
from crawler.sources.source import MissingKey, Source, SourceError
from crawler.web.inspection import Inspector

_KEY_CAP = 4096  # characters; a longer file is no key


class UnknownSource(SourceError):
    """No source has that name. The operator uses one of the names in the message."""


def source_names(settings: SearchSettings) -> list[str]:
    """Every source that may be searched."""
    return [*BUILT_IN, *settings.json_http]


def configured(settings: SearchSettings, environment: Mapping[str, str]) -> list[str]:
    """The sources that are configured, by a table of settings or by a key in the environment."""
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


def open_source(
    settings: SearchSettings,
    name: str,
    environment: Mapping[str, str],
    crawl: CrawlSettings,
    inspector: Inspector | None = None,
) -> Source:
    """The source `name`, with its key; `crawl` and `inspector` are for archived pages.

    Raises MissingKey, UnknownSource.
    """
    mine = settings_for(settings, name)
    table = name if name in BUILT_IN else f"json_http.{name}"
    if not mine.url:
        example = "http://127.0.0.1:8080" if name == "searxng" else "https://…/search?q={query}"
        raise MissingKey(f"{name} has no address: set search.{table}.url, such as {example}")
    if name == "commoncrawl":
        from crawler.sources.commoncrawl import CommonCrawl  # it imports the WARC reader

        return CommonCrawl(settings.commoncrawl, crawl, inspector)
    key = read_key(table, mine, environment)
    if not key and (name in ("brave", "mojeek") or (name != "marginalia" and (mine.key_env or mine.key_file))):
        here = f"the environment variable {mine.key_env}, or " if mine.key_env else ""
        raise MissingKey(f"{table} needs a key: set {here}search.{table}.key_file to a file that holds it")
    if name == "brave":
        return Brave(settings.brave, key)
    if name == "mojeek":
        return Mojeek(settings.mojeek, key)
    if name == "marginalia":
        return Marginalia(settings.marginalia, key)
    return Searxng(settings.searxng, key) if name == "searxng" else JsonHttp(name, settings.json_http[name], key)


def read_key(table: str, settings: SourceSettings, environment: Mapping[str, str]) -> str:
    """The key of [search.table]; "" if none is configured. Raises MissingKey if it is unusable."""
    where = f"search.{table}.key_file"
    if settings.key_file:
        try:
            with Path(settings.key_file).expanduser().open(encoding="utf-8") as file:
                key = file.read(_KEY_CAP + 1).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise MissingKey(f"{where}: {settings.key_file} cannot be read: {reason}") from None
        if not key:
            raise MissingKey(f"{where}: {settings.key_file} is empty")
    else:
        where = f"environment variable {settings.key_env}"
        key = environment.get(settings.key_env, "").strip() if settings.key_env else ""
    if len(key) > _KEY_CAP or not key.isascii() or not key.isprintable() or " " in key:
        raise MissingKey(f"{where} holds no key: it has spaces, is too long, or has characters that no key has")
    return key


def key_origin(settings: SourceSettings, environment: Mapping[str, str]) -> str:
    """The origin of a source's key, for a message."""
    if settings.key_file:
        return f"the key is that of {settings.key_file}"
    if settings.key_env and environment.get(settings.key_env, "").strip():
        return f"the key is that of the environment variable {settings.key_env}"
    return "no key is configured"
