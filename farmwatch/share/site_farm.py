"""Whether a site is a content farm, as `site` and the console say it, and why."""

from __future__ import annotations

from typing import NamedTuple, Self

from scoring.rates.farm_signs import FarmSigns, both
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass
from stream.text.wording import counted

_SAID = {True: "yes", False: "no", None: "unknown"}


class SiteFarm(NamedTuple):
    """The signs of a farm that are not in a site's text; None is unknown."""

    mass: bool | None
    monetised: bool | None
    article_urls: int | None  # in its sitemaps, a lower bound; None: no sitemap was read, or too few pages
    is_human: bool = False  # by its verdict

    @classmethod
    def of(cls, row: SiteState, signs: FarmSigns) -> Self:
        """By the signs that all sites of the run tell."""
        urls = signs.article_urls(row)
        is_human = row.verdict == SiteClass.HUMAN
        return cls(signs.mass(row), signs.monetised(row), None if urls is None else round(urls), is_human)

    @property
    def farm(self) -> bool | None:
        """Whether it is a farm: if a language model writes it, unless its verdict is human."""
        return both(not self.is_human, self.mass, self.monetised)

    @property
    def words(self) -> str:
        """It in a line."""
        urls = "" if self.article_urls is None else f" ({counted(self.article_urls, 'article URL')})"
        signs = f"in mass: {_SAID[self.mass]}{urls}, monetised: {_SAID[self.monetised]}"
        condition = "" if self.farm is False else ", if a language model writes it"
        condition = " (people write it)" if self.is_human else condition
        return f"{_SAID[self.farm]}{condition}; {signs}"

    def fields(self) -> dict[str, bool | int | None]:
        """It as JSON."""
        return {"farm": self.farm, **self._asdict()}
