"""The configured site method: with the numbers of the settings, or else those that belong to the detector."""

from __future__ import annotations

from scoring.deciles import DecileTest, load_deciles
from scoring.gaussian_test import GaussianTest, gaussian_params_for
from scoring.settings import TallySettings
from scoring.site_method import SiteMethod
from scoring.site_verdict import SiteTest, SprtParams, params_for


def site_method(settings: TallySettings, detector: str, site_test: SprtParams | None = None) -> SiteMethod:
    """The method of `settings` for page scores of the identity `detector`.

    `site_test` is that of the detector's threshold set. The numbers of `sprt` are those of the settings, else of
    `site_test`, else the ones that belong to the detector; `gaussian` and `deciles` take those of the settings, else
    the ones that belong to the detector. Raises NoSiteTest where there are none, BadSiteNumbers for a file of deciles
    that cannot be used.
    """
    close_after_ms = round(settings.close_after_s * 1000)
    if settings.method == "deciles":
        return DecileTest(load_deciles(detector, settings.deciles), close_after_ms)
    if settings.method == "gaussian":
        return GaussianTest(settings.gaussian or gaussian_params_for(detector), close_after_ms)
    return SiteTest(settings.sprt or site_test or params_for(detector), close_after_ms)
