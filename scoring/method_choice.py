"""The configured site method: with the numbers of the settings, or else those that belong to the detector."""

from __future__ import annotations

from scoring.interface import SiteMethod
from scoring.settings import TallySettings
from scoring.sites.deciles import load_deciles
from scoring.sites.gaussian import gaussian_params_for
from scoring.sites.sprt import SprtParams, params_for
from scoring.sites.stored_method import KeptDeciles, KeptGaussian, KeptMethod, KeptSprt, built


def site_method(settings: TallySettings, detector: str, site_test: SprtParams | None = None) -> SiteMethod:
    """The method of `settings` for page scores of the identity `detector`. Arguments and errors as `chosen_method`."""
    return built(chosen_method(settings, detector, site_test))


def chosen_method(settings: TallySettings, detector: str, site_test: SprtParams | None = None) -> KeptMethod:
    """The same with its numbers, as a run keeps it.

    `site_test` is that of the detector's threshold set. The numbers of `sprt` are those of the settings, else of
    `site_test`, else the ones that belong to the detector; `gaussian` and `deciles` take those of the settings, else
    the ones that belong to the detector. Raises NoSiteTest where there are none, BadSiteNumbers for a file of deciles
    that cannot be used.
    """
    close_after_ms = round(settings.close_after_s * 1000)
    if settings.method == "deciles":
        return KeptDeciles(close_after_ms=close_after_ms, numbers=load_deciles(detector, settings.deciles))
    if settings.method == "gaussian":
        return KeptGaussian(close_after_ms=close_after_ms, numbers=settings.gaussian or gaussian_params_for(detector))
    return KeptSprt(close_after_ms=close_after_ms, numbers=settings.sprt or site_test or params_for(detector))
