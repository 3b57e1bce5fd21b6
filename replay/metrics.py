"""The metrics of runs and replays."""

from __future__ import annotations

from stream.processing.metrics import counter, gauge

LIVE_RUN_INFO = gauge("live_run_info", "The run that this process carries on; always 1.", ("run", "epoch"))
CUTOVERS = counter("cutovers", "Times that this process has gone over to another run.")
REPLAY_RECORDS = counter("replay_records", "Records that a replay has dealt with, by phase.", ("run", "phase"))
REPLAY_RECORDS_EXPECTED = gauge(
    "replay_records_expected", "Records that a phase of a replay has in all.", ("run", "phase")
)
REPLAY_ETA_SECONDS = gauge("replay_eta_seconds", "Time that a replay still takes at its present pace.", ("run",))
REPLAY_YIELD_SECONDS = counter("replay_yield_seconds", "Time that a replay waited because live was behind.", ("run",))
