"""What the user does about an error, by its class: packages below raise facts, and name no command."""

from __future__ import annotations

from stream.text.user_errors import FarmwatchError

# class -> its remedy, with the names of facts; a class without one has that of the nearest class above it
REMEDIES: dict[str, str] = {
    "BadRuleset": "correct the file, or take one of `farmwatch rulesets list`",
    "BadSiteNumbers": "learn other numbers with `farmwatch train-sites`, or unset tally.deciles",
    "NoDeciles": (
        "run `farmwatch train-sites` on scores of labelled sites and set tally.deciles to its file,"
        ' or set tally.method = "sprt"'
    ),
    "NoSiteTest": (
        "run `farmwatch calibrate` on labelled pages that name their sites, or set p0 and p1 in [tally.sprt]"
    ),
    "UnknownTopic": "run `farmwatch topics --create`",
}


def remedy_of(error: Exception) -> str:
    """What to do about an error; "" if there is nothing in the table."""
    known = (REMEDIES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in REMEDIES)
    return next(known, "").format_map(error.facts) if isinstance(error, FarmwatchError) else ""


def in_full(error: Exception) -> str:
    """The message of an error with its remedy, if it has one: `what happened: what to do`."""
    return ": ".join(filter(None, (str(error), remedy_of(error))))
