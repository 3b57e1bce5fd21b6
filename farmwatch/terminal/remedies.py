"""What the user does about an error, by its class: packages below raise facts, and name no command."""

from __future__ import annotations

from stream.text.user_errors import FarmwatchError

# class -> its remedy, with the names of facts; a class without one has that of the nearest class above it
REMEDIES: dict[str, str] = {
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


def in_full(error: Exception) -> str:
    """The message of an error with its remedy, if it has one: `what happened: what to do`."""
    for kind in type(error).__mro__:
        if isinstance(error, FarmwatchError) and kind.__name__ in REMEDIES:
            return f"{error}: {REMEDIES[kind.__name__].format_map(error.facts)}"
    return str(error)
