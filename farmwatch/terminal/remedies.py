"""What the user does about an error, by its class: packages below raise facts, and name no command."""

from __future__ import annotations

from stream.text.user_errors import FarmwatchError

# class -> its remedy, with the names of facts; a class without one has that of the nearest class above it
REMEDIES: dict[str, str] = {
    "BadIdentity": "`farmwatch detectors` and `farmwatch score` print identities",
    "BadRuleset": "correct the file, or take one of `farmwatch rulesets list`",
    "BadSiteNumbers": "learn other numbers with `farmwatch train-sites`, or unset tally.deciles",
    "BadThresholds": "correct score.thresholds, or run `farmwatch calibrate` with this detector",
    "BadWeights": "install farmwatch again, or run `farmwatch train-detector`",
    "MissingExtra": "run `pip install 'farmwatch[{extra}]'`",
    "NoDeciles": (
        "run `farmwatch train-sites` on scores of labelled sites and set tally.deciles to its file,"
        ' or set tally.method = "sprt"'
    ),
    "NoSiteTest": (
        "run `farmwatch calibrate` on labelled pages that name their sites, or set p0 and p1 in [tally.sprt]"
    ),
    "NotDownloaded": (
        "run `hf download {model} --revision {revision}` on a machine with access to the hub, or set a folder that"
        " holds the model"
    ),
    "Uncalibrated": (
        "run `farmwatch calibrate --detector {detector} --labels FILE` on labelled texts, and name the file that it"
        " writes in score.thresholds"
    ),
    "UnknownThresholds": "use a published name, or the file (….json) that `farmwatch calibrate` wrote",
    "UnreadableMethod": "use the version of farmwatch that began the run, or replay again",
    "UnknownTopic": "run `farmwatch topics --create`",
}


def in_full(error: BaseException) -> str:
    """The message of an error with its remedy, if it has one: `what happened: what to do`."""
    remedy = remedy_of(error)
    return f"{error}: {remedy}" if remedy else str(error)


def remedy_of(error: BaseException | None) -> str:
    """What to do about an error, by its class, or else by that of its cause; "" = nothing is known."""
    if not isinstance(error, FarmwatchError):
        return ""
    for kind in type(error).__mro__:
        if kind.__name__ in REMEDIES:
            return REMEDIES[kind.__name__].format_map(error.facts)
    return remedy_of(error.__cause__)
