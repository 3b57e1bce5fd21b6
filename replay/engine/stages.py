"""Builds the stage of each phase of a replay."""

from __future__ import annotations

from collections.abc import Callable

from filters.rules.ruleset import Ruleset
from replay.rows.scores import known_texts, unrequested_texts
from replay.runs.configured import site_method_of
from replay.runs.phases import JUDGE, MEASURE, REQUESTS, Phase
from replay.settings import ReplaySettings
from stream.log.contract import Log
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.runs import Run

RECORDS = 4000  # in a batch of JUDGE or TALLY: a commit costs a few ms, whatever its size
BATCH_BYTES = 24 * 1024 * 1024


def stage_of(
    phase: Phase,
    log: Log,
    config: ReplaySettings,
    run: Run,
    ruleset: Ruleset,
    metrics: Metrics,
    may_request: Callable[[], bool] = lambda: True,
) -> Stage:
    """The stage of a phase. Its `close` ends what it started. JUDGE requests scores while `may_request` is true."""
    names = run.names()
    if phase.name == MEASURE:
        from filters.stages.measure import MeasureStage

        return MeasureStage(config.measure, run=run.name, names=names, replays=True, metrics=metrics)
    stage: Stage
    if phase.name == JUDGE:
        from filters.stages.judge import JudgeStage

        stage = JudgeStage(
            ruleset,
            run=run.name,
            names=names,
            known=known_texts(log, run.detector),
            replays=True,
            detector=run.detector,
            may_request=may_request,
        )
    elif phase.name == REQUESTS:
        from filters.stages.judge import ScoreRequestStage

        stage = ScoreRequestStage(
            ruleset, unrequested_texts(log, run), run=run.name, names=names, detector=run.detector
        )
    else:
        from scoring.stages.tally import TallyStage

        method = site_method_of(config, run)
        stage = TallyStage(run.detector, config.tally, run=run.name, method=method, names=names, decides=False)
    return stage
