r"""A detector's threshold, chosen by labelled texts, and its errors.

**The threshold.** Let x be the compared number, turned so that larger looks more like llm, and let n human texts be
given. To flag at most a share f of human texts, allow k = floor(f (n + 1)) - 1 of them and put the threshold on the
(k+1)-th largest x: a text is flagged strictly beyond it. If one more human text comes from the same source, its rank
among the n + 1 is uniform, so it is flagged with probability (k + 1)/(n + 1) <= f or less, for any law of the scores
(Vovk, Gammerman and Shafer 2005). The observed share k/n alone would promise too much. Its interval is that of
`scoring.statistics.shares`, clustered by site. The threshold's own interval is that of the scores at its two ends
(Woodruff, JASA 47, 1952).

**The number of texts.** With n human texts and none flagged, a rate of f is still possible with probability (1 - f)^n;
showing f with 95% confidence takes n >= ln .05 / ln(1 - f), about 3/f ("rule of three": Hanley and Lippman-Hand,
JAMA 249, 1983).

**The site test.** `scoring.sites.sprt` needs p0, the share of pages of a human site that are flagged, and p1 for an
LLM site. Sites differ, and the test is wrong for those between, so both lie toward the other kind: nine of ten human
sites stay at or below p0, nine of ten LLM sites reach p1. A test that could not decide by the number of usable scores
at which crawling stops is refused.
"""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import numpy as np

from scoring.calibration.labelled_scores import LabelledScores, separation
from scoring.calibration.platt import cross_fitted, fit_curve, reliability
from scoring.calibration.report import CalibrationReport, Slice
from scoring.errors import BadParameters, CalibrationRefused
from scoring.interface import BUILT_IN, name_of
from scoring.sites.settings import TallySettings
from scoring.sites.sprt import SprtParams, fewest_pages, params_for
from scoring.statistics.shares import share
from scoring.thresholds.threshold_set import ThresholdSet, published_for

LLM_TEXTS = 100  # needed at least; a share of 50 to 80% then has a half interval of 8 to 10 points
SITES = 10  # of each label, needed at least if sites are known
SITE_TEXTS = 5  # a smaller site shows little of its share of flagged pages
BANDS = ((0, 150), (150, 300), (300, 700), (700, None))  # words: from, below
FLAGS_PLACES = 6
GENRES = 20  # shown; the rest is one row
_READ = TallySettings().enough_articles  # usable scores of a site, unless set
_TOWARD = 0.9  # sites on the right side of p0, and of p1


def calibrate(scores: LabelledScores, name: str, fpr: float) -> tuple[ThresholdSet, CalibrationReport]:
    """Choose the threshold that flags at most `fpr` of future human texts, as the set `name`; measure its errors.

    Raises BadParameters for a rate outside of (0, .5], CalibrationRefused for too few or inseparable texts.
    """
    if not 0 < fpr <= 0.5:
        raise BadParameters(f"the false-positive rate is above 0 and at most .5, not {fpr}")
    refuse_too_few(scores, fpr)
    apart = separation(scores)
    if apart.low <= 0.5:
        swapped = "; it is rather below .5: are the labels swapped?" if apart.high < 0.5 else ""
        raise CalibrationRefused(
            f"{scores.detector} does not tell these texts apart: AUROC {apart.value:.3f}, 95% interval "
            f"{apart.low:.3f} to {apart.high:.3f}, has to be above .5{swapped}. Check the labels, label more texts, or "
            "use another detector"
        )
    threshold = choose_threshold(scores, fpr)
    low, high = threshold_interval(scores, threshold)
    clusters = scores.clusters
    curve, p_llm = None, scores.value
    if scores.number == "score":
        curve = fit_curve(scores.value, scores.llm)
        if (curve.slope < 0) is not scores.llm_below:
            raise CalibrationRefused(
                "the curve from score to probability runs the wrong way: a few scores far outside of the others pull "
                "it. Check the labels of the largest and least scores"
            )
        p_llm = cross_fitted(scores.value, scores.llm, clusters)
    site_test, about_sites = measure_sites(scores, threshold)
    chosen = ThresholdSet(
        name=name,
        detector=scores.detector,
        number=scores.number,
        threshold=threshold,
        llm_below=scores.llm_below,
        curve=curve,
        site_test=site_test,
    )
    of_all = measure(scores, chosen, "all")
    assert of_all.false_positives.share is not None  # there are human texts
    chosen = chosen.with_errors(round(of_all.false_positives.share, FLAGS_PLACES), measured_on(scores))
    report = CalibrationReport(
        thresholds=chosen,
        identity=f"{scores.detector}/{chosen.tag}",
        fpr=fpr,
        threshold_low=low,
        threshold_high=high,
        knows_sites=scores.knows_sites,
        human_sites=_sites(scores, llm=False),
        llm_sites=_sites(scores, llm=True),
        abstained_human=scores.abstained_human,
        abstained_llm=scores.abstained_llm,
        all=of_all,
        published=[measure(scores, other, other.name) for other in published_for(scores.detector)],
        lengths=[measure(part, chosen, band) for band, part in by_length(scores)],
        genres=[measure(part, chosen, genre) for genre, part in by_genre(scores)],
        reliability=reliability(p_llm, scores.llm, clusters),
        about_sites=about_sites,
    )
    return chosen, report.rounded()


def measured_on(scores: LabelledScores) -> str:
    """The texts in words, such as "1,944 human and 438 LLM texts of 69 sites, on which it was chosen"."""
    llm = int(scores.llm.sum())
    sites = f" of {len({*filter(None, scores.sites)}):,} sites" if scores.knows_sites else ""
    return f"{len(scores.llm) - llm:,} human and {llm:,} LLM texts{sites}, on which it was chosen"


def needed_human_texts(fpr: float) -> int:
    """Human texts needed to show a false-positive rate of `fpr` with 95% confidence."""
    return math.ceil(math.log(0.05) / math.log1p(-fpr))


def refuse_too_few(scores: LabelledScores, fpr: float) -> None:
    """Refuse too few texts. Raises CalibrationRefused with the available and the needed numbers."""
    rows = [
        ("human texts", int((~scores.llm).sum()), needed_human_texts(fpr)),
        ("LLM texts", int(scores.llm.sum()), LLM_TEXTS),
    ]
    if scores.knows_sites:
        rows.append(("sites with human texts", _sites(scores, llm=False), SITES))
        rows.append(("sites with LLM texts", _sites(scores, llm=True), SITES))
    lacking = [(noun, have, need) for noun, have, need in rows if have < need]
    if not lacking:
        return
    said = "; ".join(f"{have} {noun}, {need} are needed" for noun, have, need in lacking)
    if out := scores.abstained_human + scores.abstained_llm:
        said += f"; {out} texts were not scored"
    hint = " A higher rate needs fewer human texts." if fpr < 0.05 else ""
    raise CalibrationRefused(f"too few labelled texts for a false-positive rate of {fpr:g}: {said}.{hint}")


def choose_threshold(scores: LabelledScores, fpr: float) -> float:
    """The loosest threshold that flags at most `fpr` of future human texts; needs some 1/fpr human texts."""
    human = np.sort(scores.toward_llm[~scores.llm])[::-1]
    allowed = max(0, math.floor(fpr * (len(human) + 1) + 1e-9) - 1)
    return float(-human[allowed] if scores.llm_below else human[allowed])


def threshold_interval(scores: LabelledScores, threshold: float) -> tuple[float, float]:
    """95% interval of the threshold: the scores at the ends of the interval of the false-positive rate."""
    chosen = ~scores.llm
    x = scores.toward_llm[chosen]
    beyond = share(scores.flagged(threshold)[chosen], scores.clusters[chosen])
    assert beyond.low is not None and beyond.high is not None
    ranked, texts = np.sort(x)[::-1], len(x)
    high = float(ranked[math.floor(beyond.low * texts)])
    low = float(ranked[min(texts - 1, math.ceil(beyond.high * texts))])
    return (-high, -low) if scores.llm_below else (low, high)


def measure(scores: LabelledScores, thresholds: ThresholdSet, name: str) -> Slice:
    """The errors of a threshold on these texts."""
    flagged = scores.flagged(thresholds.threshold)
    human, llm, clusters = ~scores.llm, scores.llm, scores.clusters
    return Slice(
        name=name,
        false_positives=share(flagged[human], clusters[human]),
        sensitivity=share(flagged[llm], clusters[llm]),
        specificity=share(~flagged[human], clusters[human]),
        auroc=separation(scores) if human.any() and llm.any() else None,
    )


def by_length(scores: LabelledScores) -> list[tuple[str, LabelledScores]]:
    """The texts by their words; bands without a text are left out."""
    parts = []
    for start, below in BANDS:
        inside = (scores.words >= start) & (scores.words < (below or math.inf))
        if inside.any():
            parts.append((length_name(start), scores.where(inside)))
    return parts


def length_name(words: int) -> str:
    """The band of a text of this many words."""
    start, below = next((start, below) for start, below in reversed(BANDS) if words >= start)
    return f"{start}-{below - 1} words" if below else f"{start}+ words"


def by_genre(scores: LabelledScores) -> list[tuple[str, LabelledScores]]:
    """The texts by genre, largest first; beyond GENRES they are one row, and those of no known genre another."""
    genres, counts = np.array(scores.genres, dtype=object), Counter(filter(None, scores.genres))
    names = sorted(counts, key=lambda name: (-counts[name], name))
    parts = [(name, scores.where(genres == name)) for name in names[:GENRES]]
    if rest := names[GENRES:]:
        parts.append((f"{len(rest)} more", scores.where(np.isin(genres, rest))))
    if names and "" in scores.genres:
        parts.append(("(none)", scores.where(genres == "")))
    return parts


def measure_sites(scores: LabelledScores, threshold: float) -> tuple[SprtParams | None, str]:
    """Parameters of the sequential test from the known sites, and their evidence; None: they make no test."""
    if not scores.knows_sites:
        return None, "none of its own: no sites are known"
    known = scores.where(np.array([bool(site) for site in scores.sites]))
    flagged = known.flagged(threshold)
    shares = []
    for chosen in (~known.llm, known.llm):
        _, codes = np.unique(known.clusters[chosen], return_inverse=True)
        texts = np.bincount(codes)
        enough = texts >= SITE_TEXTS
        shares.append(np.bincount(codes, flagged[chosen])[enough] / texts[enough])
    humans, llms = shares
    if min(len(humans), len(llms)) < SITES:
        return None, (
            f"none of its own: {len(humans)} human and {len(llms)} LLM sites with {SITE_TEXTS} texts or more,"
            f" {SITES} of each are needed"
        )
    p0, p1 = (
        min(max(round(float(share), 3), 0.02), 0.98)
        for share in (np.quantile(humans, _TOWARD, method="higher"), np.quantile(llms, 1 - _TOWARD, method="lower"))
    )
    said = f"{_TOWARD:.0%} of {len(humans)} human sites are flagged on at most {p0:.1%} of their pages, "
    said += f"{_TOWARD:.0%} of {len(llms)} LLM sites on at least {p1:.1%}"
    if p1 - p0 < 0.1:
        return None, f"none of its own: {said}, too near for a test; take a higher false-positive rate"
    built_in = name_of(scores.detector) == BUILT_IN
    start = params_for(BUILT_IN) if built_in else SprtParams()
    fewest = fewest_pages(msgspec.structs.replace(start, p0=p0, p1=p1, min_pages=1, min_articles=1))
    if max(fewest) > _READ:
        return None, (
            f"none of its own: {said}; with these the test needs {fewest.llm} pages to say llm and {fewest.human} to"
            f" say human, and {_READ} of a site are read (tally.enough_articles);"
            f" take a {'lower' if fewest.llm > _READ else 'higher'} false-positive rate"
        )
    least = start.min_articles if built_in else 1
    return msgspec.structs.replace(start, p0=p0, p1=p1, min_articles=max(least, min(fewest))), said


def _sites(scores: LabelledScores, *, llm: bool) -> int:
    return len({site for site, label in zip(scores.sites, scores.llm, strict=True) if site and bool(label) is llm})
