"""The commands on rulesets: `list`, `show`, `check` and `diff`. They need no log and no configuration."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any

from cyclopts import App, Parameter

from farmwatch.commands.options import AsJson
from farmwatch.tables.columns import Column
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message, put, put_json, put_table, put_wrapped
from filters.errors import BadRuleset
from filters.perplexity.names import DANGER
from filters.rules.catalogue import RULES
from filters.rules.diff import differences, shown
from filters.rules.ruleset import Ruleset, load_ruleset, rule_fields, shipped_rulesets
from stream.text.user_errors import Exit
from stream.text.wording import counted

Named = Annotated[str, Parameter(help="Name of a shipped ruleset, or a TOML file.")]
rulesets = App(name="rulesets")
rulesets.command(
    "farmwatch.commands.runs.evaluate:evaluate_rulesets",
    name="evaluate",
    help="Evaluate rulesets on labelled pages: precision and recall for articles, pass rates, and each rule's drops.",
)


_COLUMNS: list[Column[Ruleset]] = [
    Column("name", "text", attrgetter("name")),
    Column("digest", "text", attrgetter("digest")),
    Column("rules_in_force", "integer", attrgetter("in_force")),
    Column("segments", "text", lambda r: ", ".join(kind for of in r.tables.values() for kind in of.kinds)),
    Column("description", "text", attrgetter("description")),
]


@rulesets.command(name="list")
def list_rulesets(*, listing: Listing = LISTING) -> int:
    """One row per ruleset that ships with farmwatch."""
    listing.of(_COLUMNS).put(map(load_ruleset, shipped_rulesets()), "ruleset")
    return Exit.OK


@rulesets.command(name="show")
def show_ruleset(ruleset: Named, /, *, json: AsJson = False) -> int:
    """The text and the digest of a ruleset. A starting point for your own: save it and change it.

    JSON: every rule with its operator, threshold, fields and meaning, and those of the table `otherwise`.
    """
    loaded = load_ruleset(ruleset)
    if json:
        otherwise = _table(loaded.otherwise) if loaded.otherwise else None
        put_json({**_summary(loaded), "description": loaded.description, **_table(loaded), "otherwise": otherwise})
    else:
        put(f"# ruleset {loaded.name}, digest {loaded.digest}")
        put(loaded.source.rstrip("\n"))
    return Exit.OK


@rulesets.command(name="check")
def check_rulesets(
    rulesets: Annotated[list[str], Parameter(help="TOML files, or names of shipped rulesets.", negative="")],
    /,
    *,
    json: AsJson = False,
) -> int:
    """Check rulesets: the digest of each good one, the file and all mistakes of each bad one.

    A misspelt rule or field, a wrong type and an impossible threshold are mistakes: exit code 2. A good file also lists
    the rules that decide nothing: those without a threshold, and those whose threshold every page passes.
    """
    results: list[dict[str, Any]] = []
    for name in rulesets:
        try:
            ruleset = load_ruleset(name)
        except BadRuleset as error:
            message(str(error))
            results.append({"file": name, "ok": False, "errors": str(error).split("\n")})
            continue
        rules = [(f"{table}{rule.name}", rule) for table, of in ruleset.tables.items() for rule in of.rules]
        disabled = [named for named, rule in rules if rule.threshold is None]
        passed = [named for named, r in rules if RULES[r.name].passes_all(r.threshold) and not r.drop_unknown]
        results.append({"file": name, "ok": True, **_summary(ruleset), "disabled": disabled, "always_passed": passed})
        if json:
            continue
        put(f"{name}: ok, {counted(ruleset.in_force, 'rule')} in force, digest {ruleset.digest}")
        if ruleset.fluent:
            put_wrapped(DANGER)
        for names, words in ((disabled, "disabled (no threshold)"), (passed, "passed by every page")):
            if names:
                verb = "is" if len(names) == 1 else "are"
                put_wrapped(f"{counted(len(names), 'rule')} {verb} {words}: {', '.join(names)}")
    if json:
        put_json(results)
    return Exit.OK if all(entry["ok"] for entry in results) else Exit.USAGE


@rulesets.command(name="diff")
def diff_rulesets(a: Named, b: Named, /, *, json: AsJson = False) -> int:
    """The differences of two rulesets: rules that only one has, thresholds, other fields, their order.

    Exit code 0 if they are equal in meaning (one digest), 1 if they differ, as of `diff`.
    """
    one, other = load_ruleset(a), load_ruleset(b)
    changes = differences(one, other)
    if json:
        rows = [{"rule": d.rule, "field": d.field, "a": d.a, "b": d.b} for d in changes]
        put_json({"a": _summary(one), "b": _summary(other), "equal": not changes, "differences": rows})
    elif changes:
        put_table(("rule", "field", a, b), (shown(difference) for difference in changes))
    else:
        put(f"{a} and {b} are equal in meaning: digest {one.digest}")
    return Exit.PROBLEM if changes else Exit.OK


def _summary(ruleset: Ruleset) -> dict[str, Any]:
    return {"name": ruleset.name, "digest": ruleset.digest, "rules_in_force": ruleset.in_force}


def _table(ruleset: Ruleset) -> dict[str, Any]:
    rules = [
        {"name": rule.name, "op": RULES[rule.name].op, **rule_fields(rule)}
        | {"threshold": rule.threshold, "doc": RULES[rule.name].doc}
        for rule in ruleset.rules
    ]
    return {**ruleset.fields, "rules": rules}
