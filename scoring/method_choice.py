"""The configured site method, with numbers of the settings or of the detector."""

from __future__ import annotations

from scoring.settings import TallySettings
from scoring.sites.deciles import DecileTest, load_deciles
from scoring.sites.gaussian import GaussianTest, gaussian_params_for
from scoring.sites.sprt import SiteTest, SprtParams, params_for
from scoring.sites.stored_method import StoredMethod


def site_method(settings: TallySettings, detector: str, site_test: SprtParams | None = None) -> StoredMethod:
    """The method of `settings` for page scores of the identity `detector`.

    `site_test` is that of the detector's threshold set: `sprt` uses it if the settings have no numbers. Raises
    NoSiteTest if no numbers belong to the detector, BadSiteNumbers for an unusable file of deciles.
    """
    close_after_ms = round(settings.close_after_s * 1000)
    if settings.method == "deciles":
        return DecileTest(load_deciles(detector, settings.deciles), close_after_ms)
    if settings.method == "gaussian":
        return GaussianTest(settings.gaussian or gaussian_params_for(detector), close_after_ms)
    return SiteTest(settings.sprt or site_test or params_for(detector), close_after_ms)
