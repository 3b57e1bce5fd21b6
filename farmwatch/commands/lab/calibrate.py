"""`farmwatch lab calibrate`: a detector's threshold from labelled texts, and its errors."""

from __future__ import annotations

import json as json_text
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config
from farmwatch.config.opening import opened
from farmwatch.console.drawings import saved
from farmwatch.console.pictures import Strip, shares
from farmwatch.labels.label_lines import LabelFile, LabelledText
from farmwatch.share.article_texts import article_texts
from farmwatch.share.scored_articles import scored_articles
from farmwatch.terminal.messages import counting, message, put, put_json, put_table, put_wrapped
from farmwatch.terminal.remedies import in_full
from replay.runs.configured import identity_of, tally_identity
from replay.runs.lookup import find_run
from scoring.calibration.labelled_scores import ScoredLabel, compared, gather
from scoring.calibration.report import CalibrationReport, summary, tables
from scoring.calibration.threshold import FLAGS_PLACES
from scoring.calibration.threshold import calibrate as choose
from scoring.detectors.registry import base_of, detector_identities, load_detectors, refuse_bad_identity
from scoring.detectors.settings import ScoreSettings
from scoring.errors import BadIdentity, CalibrationRefused, MissingModel, NoSiteTest, PoisonText
from scoring.interface import Detector, TextScore, name_of
from scoring.rates.canary import truth_of
from scoring.rates.controls import ControlCounts
from scoring.sites.sprt import params_for
from scoring.thresholds.threshold_set import ThresholdSet, valid_name, write_thresholds
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.control_sites import is_control_site
from stream.schema.page_age import PageAge
from stream.schema.runs import LIVE
from stream.schema.vocabulary import Truth
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from stream.text.whole_files import write_whole
from stream.text.wording import counted

_TEXTS_AT_ONCE = 64
OnBad = Callable[[str, PoisonText], object]
"""Called with the place of a text that fails on the device, and why."""


def calibrate(
    *,
    labels: Annotated[
        Path | None, Parameter(help="JSON lines {label, text[, site, genre]}, or scores, or CSV; `-` is stdin.")
    ] = None,
    from_controls: Annotated[
        bool,
        Parameter(
            negative="",
            help="Control pages of the log are human texts, its LLM canaries LLM texts, beside those of --labels.",
        ),
    ] = False,
    detector: Annotated[
        str, Parameter(help="Name of the detector; or, for scores whose lines do not say it, its whole identity.")
    ] = "",
    fpr: Annotated[
        float, Parameter(help="Share of human texts that may be flagged, at most.", validator=Number(gt=0, lte=0.5))
    ] = 0.01,
    name: Annotated[str, Parameter(help="Of the threshold set and its files: up to 32 of a-z 0-9 - .")] = "calibrated",
    out: Annotated[Path, Parameter(help="Folder for the files.")] = Path(),
    score_column: Annotated[str, Parameter(help="CSV column with the score.")] = "score",
    label_column: Annotated[str, Parameter(help="CSV column with the label: human or llm, or 0 or 1.")] = "label",
    force: Annotated[bool, Parameter(help="Write over files that are there.", negative="")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Choose a detector's threshold on labelled texts, measure it there, and write it as a threshold set.

    The command writes NAME.json (the set, for score.thresholds), NAME.report.json, and the reliability plot, NAME.svg.
    It scores texts; lines of `farmwatch lab score` with a label keep their scores. Where lines have a
    site, intervals are clustered by it.

    With --from-controls the threshold holds for the sites of the log: what it flags of their pages of before ChatGPT is
    said with each score from then on. It takes the scores that the log has of the detector that judges its sites, or
    of --detector; if the log has none, it scores the texts. The errors are measured on the texts on which the threshold
    is chosen: keep sites aside for a check.

    Exit code 1: bad lines were reported and skipped, or the labels are too few;
    then nothing is written, and the message says how many are needed.
    """
    if not valid_name(name):
        raise UsageError("--name: up to 32 of a-z, 0-9, - and ., the first a letter or digit")
    files = {form: out / f"{name}.{form}" for form in ("json", "report.json", "svg")}
    there = [str(file) for file in files.values() if file.exists()]
    if there and not force:
        raise UsageError(f"{', '.join(there)}: there already; take another --name, or --force to write over")
    if labels is None and not from_controls:
        raise UsageError("give --labels FILE, or --from-controls, or both")
    config = common.load().config
    file = None if labels is None else LabelFile(labels, score_column, label_column)
    try:
        of_log = _of_log(config, detector) if from_controls else []
        of_file = [] if file is None else _scores(config, list(file), detector, file)
        chosen, report = choose(gather([*of_log, *of_file]), name, fpr)
    except CalibrationRefused as error:
        if file is not None:
            file.end()
        message(f"farmwatch: {in_full(error)}")
        return Exit.PROBLEM
    if (here := _of_controls(chosen, of_log)) is not None:
        chosen = chosen.with_errors(round(here.share, FLAGS_PLACES), f"{chosen.measured_on}; {_words(here)}")
        report = msgspec.structs.replace(report, thresholds=chosen)
    out.mkdir(parents=True, exist_ok=True)
    write_thresholds(files["json"], chosen, force=force)
    encoded = msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
    write_whole(files["report.json"], encoded, force=force)
    write_whole(files["svg"], _plot(report).encode(), force=force)
    if json:
        put_json({**json_text.loads(encoded), "files": {form: str(path) for form, path in files.items()}})
    else:
        _put_report(report, list(files.values()))
    return Exit.OK if file is None else file.end()


def _of_log(config: Config, detector: str) -> list[ScoredLabel]:
    """The scores of control pages and of LLM canaries in the log; without one, those of their texts now.

    Raises CalibrationRefused without a control, and as `load_detectors`.
    """
    with opened(config) as log:
        base = base_of(detector if "/" in detector else _identity(log, config, detector))
        rows = list(_scored_of_log(log, base))
        if all(row.llm for row in rows) and "/" not in detector and (texts := _texts_of_log(log)):
            message(f"no control page has a score of {base}: it reads {counted(len(texts), 'text')} of the log now")
            rows = _scored(_only(config, name_of(base)), texts, lambda place, why: message(f"{place}: {why}"))
    if all(row.llm for row in rows):
        raise CalibrationRefused(f"the log has no control page with a score of {base}")
    return rows


def _texts_of_log(log: Log) -> list[LabelledText]:
    """The texts of control pages and of LLM canaries; of a repeated text one, as of labels."""
    articles = article_texts(log, lambda site, age: _is_llm(site, age) is not None)
    return [
        LabelledText(
            place=f"page {article.id}",
            llm=_is_llm(article.site, article.age) is True,
            text=article.text,
            score=None,
            p_llm=None,
            detector="",
            words=len(article.text.split()),
            site=article.site,
            genre=article.language,
        )
        for article in {article.text: article for article in articles}.values()
    ]


def _scored_of_log(log: Log, base: str) -> Iterator[ScoredLabel]:
    """The scores of the same articles that the log has; of a repeated text one."""
    known = set[str]()
    for article in scored_articles(log, base):
        is_llm, score = _is_llm(article.site, article.age), article.score
        if is_llm is not None and score.text_digest not in known:
            known.add(score.text_digest)
            number = score.p_llm if compared(base) == "p_llm" else score.score
            register = article.words, article.site, article.language
            yield ScoredLabel(score.detector, is_llm, number, *register)


def _is_llm(site: str, age: str) -> bool | None:
    """Whether a language model wrote a page of this site and age; None: not known."""
    truth = truth_of(site)
    if age == PageAge.CONTROL and (truth is None or is_control_site(site)):
        return False
    return True if truth == Truth.LLM else None


def _identity(log: Log, config: Config, name: str) -> str:
    """The detector that judges sites, if it has this name or none is given; else the configured one of the name."""
    control = Control(log)
    judging = (find_run(control, LIVE).detector if control.runs else "") or tally_identity(config)
    return judging if name in ("", name_of(judging)) else identity_of(config, name)


def _of_controls(chosen: ThresholdSet, rows: Sequence[ScoredLabel]) -> ControlCounts | None:
    """What a set flags of the control pages of the log, as `review controls` counts them; None without one."""
    scored: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for row in rows:
        if not row.llm and row.number is not None:
            scored[row.site] += 1
            flagged[row.site] += chosen.flag(row.number)
    return ControlCounts.of(Counter((number, flagged[site]) for site, number in scored.items()))


def _words(here: ControlCounts) -> str:
    of = f"{here.flagged:,} of {counted(here.pages, 'page')} of {counted(here.sites, 'site')}"
    return f"flags {here.share:.2%} of the controls of the log ({of}; 95% interval {here.low:.2%} to {here.high:.2%})"


def _scores(config: Config, lines: Sequence[LabelledText], detector: str, file: LabelFile) -> list[ScoredLabel]:
    """Score the texts that have no score yet. Raises PooledDetectors, and as `load_detectors`."""
    if not lines:
        file.end()
        raise FarmwatchError("no labelled text or score: nothing to calibrate with")
    texts = [line for line in lines if line.text is not None]
    if "/" in detector:
        try:
            refuse_bad_identity(detector)
        except BadIdentity as error:
            raise UsageError(f"--detector: {error}") from error
    if "/" in detector and texts:
        raise UsageError(f"--detector: {detector!r} is an identity; to score texts, take a name of score.detectors")
    default = detector
    if "/" not in detector and (detector or texts):
        try:
            default = detector_identities(_only(config, detector))[0]
        except MissingModel as error:
            if texts:
                raise
            raise UsageError(
                f"--detector {detector!r}: scores need the whole identity, as `farmwatch lab score` prints it;"
                f" the name alone does not give it on this machine: {in_full(error)}"
            ) from error
    rows = _scored(_only(config, detector), texts, file.bad) if texts else []
    for line in lines:
        if line.text is not None:
            continue
        identity = line.detector or default
        if "/" not in identity:
            raise UsageError(
                f"{line.place}: a score, but not whose: say --detector IDENTITY, as `farmwatch lab score` prints it"
            )
        number = line.p_llm if compared(base_of(identity)) == "p_llm" else line.score
        if number is None and line.score is not None:
            file.bad(line.place, f"no p_llm, which is what the threshold of {identity} is compared with")
            continue
        rows.append(ScoredLabel(identity, line.llm, number, line.words, line.site, line.genre))
    return rows


def _only(config: Config, detector: str) -> ScoreSettings:
    """Settings of one detector, by default the first of the configuration, without thresholds."""
    return msgspec.structs.replace(config.score, detectors=[detector or config.score.detectors[0]], thresholds={})


def _scored(settings: ScoreSettings, lines: Sequence[LabelledText], on_bad: OnBad) -> list[ScoredLabel]:
    (loaded,) = load_detectors(settings)
    if loaded.warning:
        message(f"{settings.detectors[0]}: {loaded.warning}")
    of = compared(base_of(loaded.identity))
    rows = []
    with counting(len(lines), "texts") as advance:
        for start in range(0, len(lines), _TEXTS_AT_ONCE):
            batch = lines[start : start + _TEXTS_AT_ONCE]
            for line, scored in _each(loaded, batch, on_bad):
                number = scored.p_llm if of == "p_llm" else scored.score
                rows.append(ScoredLabel(loaded.identity, line.llm, number, line.words, line.site, line.genre))
            advance(len(batch))
    return rows


def _each(detector: Detector, lines: Sequence[LabelledText], on_bad: OnBad) -> Iterator[tuple[LabelledText, TextScore]]:
    """Lines with their scores; a text that fails on the device is reported, and the others are scored."""
    try:
        yield from zip(lines, detector.score([line.text or "" for line in lines]), strict=True)
    except PoisonText as error:
        if len(lines) == 1:
            on_bad(lines[0].place, error)
            return
        for line in lines:
            yield from _each(detector, [line], on_bad)


def _plot(report: CalibrationReport) -> str:
    """The reliability plot: of each tenth of the texts, the share that is LLM beside the mean p_llm, a dashed line."""
    rows = [
        Strip(f"mean p_llm {group.mean:.3f}", observed.share, observed.low, observed.high, "LLM", group.mean)
        for group in report.reliability.groups
        for observed in (group.observed,)
    ]
    return saved(shares(f"Share of LLM texts by p_llm: {report.identity}", rows))


def _put_report(report: CalibrationReport, files: Sequence[Path]) -> None:
    put_wrapped(report.identity)
    for sentence in summary(report):
        put_wrapped(sentence, indent="  ")
    for table in tables(report):
        put("")
        put_table(table.headings, table.rows, table.title)
    put("")
    put_wrapped(f"written: {', '.join(str(file) for file in files)}", indent="  ")
    kind = report.identity.split("/", 1)[0]
    put("to use it, in farmwatch.toml:")
    put("[score.thresholds]")
    put(f"{kind} = {json_text.dumps(str(files[0].absolute()), ensure_ascii=False)}")
    if report.thresholds.site_test is None and not _has_site_test(report.identity):
        put("its scores judge sites only with numbers of the site test:")
        put("[tally.sprt]")
        put("p0 = …  # share of pages flagged, that hardly a human site exceeds")
        put("p1 = …  # that hardly an LLM site falls below")


def _has_site_test(identity: str) -> bool:
    try:
        params_for(identity)
    except NoSiteTest:
        return False
    return True
