"""What the user does about an error, by its class: packages below raise facts, and name no command."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from stream.schema.runs import Run
from stream.text.user_errors import FarmwatchError
from stream.text.wording import one_line

# class, or class and fact `case` -> the remedy, with the names of facts; without one, that of the nearest class above.
# A fact `run` that is a row of a run also gives `resume`, the command that resumes it, and `settings`.
REMEDIES: dict[str, str] = {
    "BadCrawlSettings no agent": "set crawl.signature.agent to https://HOST: signed requests name it",
    "BadIdentity": "`farmwatch lab detectors` and `farmwatch lab score` print identities",
    "BadModel outdated": "train it again",
    "BadRuleset": "correct the file, or take one of `farmwatch rulesets list`",
    "BadSigningKey": "`farmwatch crawl key FILE --new` makes a key in a new file, which crawl.signature.key names",
    "BadSigningKey open": "`chmod go= {file}`",
    "BadSiteNumbers": "learn other numbers with `farmwatch lab train-sites`, or unset tally.deciles",
    "BadThresholds": "correct score.thresholds, or run `farmwatch lab calibrate` with this detector",
    "BadWeights": "install farmwatch again, or run `farmwatch lab train-detector`",
    "CutoverRefused behind": (
        "`{resume} --to now` processes the newer records, or --max-lag N lets the live stages catch up"
    ),
    "CutoverRefused few scores": (
        "`{resume}` adds newer scores and requests the missing ones; --partial accepts the run as it is"
    ),
    "CutoverRefused lacks records": "--partial accepts the run without them",
    "CutoverRefused no article": "look at `farmwatch compare live {run.shown}`; --partial takes it all the same",
    "CutoverRefused no live stage": "start `farmwatch up` first",
    "CutoverRefused no topic": "`{resume}` first",
    "CutoverRefused still behind": "`{resume}` resumes it if no process works on it (see `farmwatch runs`)",
    "LiveRunUnfit back": "`farmwatch cutover --back` goes back to the run {before}",
    "LiveRunUnfit epoch": (
        "start with the run's settings, {settings}, and versions. Or `farmwatch log upgrade --check` shows what"
        " differs, `farmwatch log upgrade` measures the stored pages again"
    ),
    "MissingExtra": "run `pip install '.[{extra}]'` in the checkout",
    "NoDeciles": (
        "run `farmwatch lab train-sites` on scores of labelled sites and set tally.deciles to its file, or set"
        ' tally.method = "sprt"'
    ),
    "NoLog": "name another folder, or create a log with `farmwatch up`",
    "SchemaTooNew": "where a newer farmwatch wrote it, upgrade this process; otherwise restore the log from a backup",
    "TopicMismatch": "set log.partitions to the old number, or another log.prefix",
    "NoSiteTest": "run `farmwatch lab calibrate` on labelled pages with their sites, or set p0 and p1 in [tally.sprt]",
    "NotDownloaded": (
        "run `hf download {model} --revision {revision}` on a machine with access to the hub, or set a folder that"
        " holds the model"
    ),
    "NotFound no run": "`farmwatch up` begins one",
    "NotFound no verdict": "`farmwatch runs` shows its progress",
    "NotFound nothing to begin by": "give --ruleset or --detector to begin a new run",
    "OtherCutover changed": "check it with `farmwatch runs show {run.shown}`, and try again",
    "OtherParameters": "take another --name, or give only --name to resume it",
    "OutsideRetention": "take --from earliest, or {kept}",
    "RunNeeded at work": "`farmwatch runs cancel {run.shown}` first. A killed process counts for a few seconds more",
    "RunNeeded at work, was live": "stop them first. A killed process counts for a few seconds more",
    "RunNeeded before": "`farmwatch cutover --back` needs it. --force removes it",
    "RunRefused being removed": "finish that with `farmwatch runs rm {run.shown}`, or take another name",
    "RunRefused continued live": "the daemon (`farmwatch up`) continues it",
    "RunRefused live": "make another run live first, with `farmwatch cutover`",
    "RunRefused other ruleset": "begin another run with `farmwatch replay --name`",
    "RunRefused was live": (
        "`farmwatch cutover {run.shown}` does so. Such a run cannot be cancelled. To stop a process that replays it,"
        " press Ctrl-C or send SIGTERM"
    ),
    "Uncalibrated": (
        "run `farmwatch lab calibrate --detector {detector} --labels FILE` on labelled texts, and name the file that it"
        " writes in score.thresholds"
    ),
    "UnknownThresholds": "use a published name, or the file (….json) that `farmwatch lab calibrate` wrote",
    "UnknownTopic": "run `farmwatch log topics --create`",
    "UnreadableMethod": "use the version of farmwatch that began the run, or replay again",
    "UsageError epoch": (
        "use the settings of the run, {settings}, not {configured}, and the versions of farmwatch and its"
        " libraries, or begin another run"
    ),
}

# event of the log of a package below -> the same
EVENTS: dict[str, str] = {
    "few_open_files": "raise `ulimit -n`, or lower crawl.max_in_flight",
    "frontier_written_ahead": "set this machine's clock if it is behind",
    "no_socket_left": "raise the limit of open files (ulimit -n), or lower crawl.max_in_flight",
    "proxy_failed": "check crawl.proxy: host, port, password, and whether it permits CONNECT; no site is given up",
}


def in_full(error: BaseException) -> str:
    """The message of an error with its remedy, if it has one: `what happened: what to do`."""
    remedy = remedy_of(error)
    return f"{error}: {remedy}" if remedy else str(error)


def remedy_of(error: BaseException | None) -> str:
    """What to do about an error, by its class and case, or else by that of its cause; "" = nothing is known."""
    if not isinstance(error, FarmwatchError):
        return ""
    facts = {name: flags_of(fact) if isinstance(fact, Mapping) else fact for name, fact in error.facts.items()}
    run = facts.get("run")
    if isinstance(run, Run):
        facts |= {"resume": resume_command(run), "settings": flags_of(run.measured_by)}
    for kind in type(error).__mro__:
        for key in (f"{kind.__name__} {facts.get('case', '')}", kind.__name__):
            if key in REMEDIES:
                return REMEDIES[key].format_map(facts)
    return remedy_of(error.__cause__)


def flags_of(settings: Mapping[str, str]) -> str:
    """Settings that are not the defaults, as flags of a command."""
    return one_line(" ".join(f"--set {quote(f'{name}={value}')}" for name, value in settings.items())) or "the defaults"


def resume_command(run: Run) -> str:
    """The command that resumes a replay, with the settings that it measures by."""
    flags = [flags_of(run.measured_by)] if run.remeasures and run.measured_by else []
    return " ".join(("farmwatch replay --name", run.shown, *flags))
