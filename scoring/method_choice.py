"""A site method by its name: with the configured numbers, or else those that belong to the detector."""

from __future__ import annotations

from pathlib import Path

from scoring.deciles import DecileTest, load_deciles
from scoring.gaussian_test import GaussianParams, GaussianTest, gaussian_params_for
from scoring.site_method import MethodName, SiteMethod
from scoring.site_verdict import SiteTest, SprtParams, params_for


def site_method(
    name: MethodName,
    detector: str,
    *,
    sprt: SprtParams | None = None,
    gaussian: GaussianParams | None = None,
    deciles: Path | None = None,
    close_after_ms: int | None = None,
) -> SiteMethod:
    """The method `name` for page scores of the identity `detector`.

    `sprt`, `gaussian` and `deciles` (a file of `farmwatch train-sites`) take the place of the detector's own numbers.
    Raises NoSiteTest where there are none, BadSiteNumbers for a file that cannot be used.
    """
    if name == "deciles":
        return DecileTest(load_deciles(detector, deciles), close_after_ms)
    if name == "gaussian":
        return GaussianTest(gaussian or gaussian_params_for(detector), close_after_ms)
    return SiteTest(sprt or params_for(detector), close_after_ms)
