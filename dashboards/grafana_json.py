"""The dashboards as Grafana's JSON: an overview, and one for each row."""

from __future__ import annotations

import json
from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.builders import prometheus, stat, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardLink,
    DashboardLinkType,
    DataSourceRef,
    GridPos,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
)

from dashboards.alerts import ALERTS, runbook_url
from dashboards.pace import Durations
from dashboards.panels import ANNOTATIONS, ROWS, Panel, Row

_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_WIDTH, _HEIGHT, _ACROSS = 8, 8, 24
_VARIABLES = {"@run": 'run=~"$run"', "@rate": "$__rate_interval"}
_OVERVIEW = "overview"


def query(text: str) -> str:
    """The query as Grafana sends it."""
    for name, written in _VARIABLES.items():
        text = text.replace(name, written)
    return Durations().query(text)


def dashboards(docs: str) -> dict[str, str]:
    """File name -> JSON. `docs` is the address of the documentation."""
    shown = [Row(row.name, row.doc, tuple(panel for panel in row.panels if panel.overview)) for row in ROWS]
    made = {_OVERVIEW: _dashboard("farmwatch", _OVERVIEW, shown, docs)}
    for row in ROWS:
        name = row.name.lower()
        made[name] = _dashboard(f"farmwatch: {name}", name, [row], docs)
    return {f"{name}.json": as_text(of.build()) for name, of in made.items()}


def as_text(board: Dashboard) -> str:
    """JSON with a line for each panel, so that a change shows which."""
    read = json.loads(JSONEncoder(sort_keys=True).encode(board))
    panels = ",\n".join(json.dumps(panel, sort_keys=True) for panel in read.pop("panels"))
    rest = [f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(read.items())]
    return "{" + ",\n".join([*rest, f'"panels": [\n{panels}\n]']) + "}\n"


def _dashboard(title: str, name: str, rows: Sequence[Row], docs: str) -> grafana.Dashboard:
    made = (
        grafana.Dashboard(title)
        .uid(f"farmwatch-{name}")
        .tags(["farmwatch"])
        .refresh("1m")
        .time("now-24h", "now")
        .timezone("utc")
        .readonly()
        .link(grafana.DashboardLink("farmwatch").type(DashboardLinkType.DASHBOARDS).tags(["farmwatch"]).keep_time(True))
        .with_variable(grafana.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_variable("run", "label_values(farmwatch_live_run_info, run)", "All", ".*"))
        .with_variable(_variable("source", "label_values(farmwatch_share, source)", "all"))
    )
    for what, colour, text in ANNOTATIONS:
        note = grafana.AnnotationQuery().name(what).datasource(_SOURCE).enable(True)
        made.annotation(note.icon_color(colour).expr(query(text)))
    y = number = 0
    for row in rows:
        number += 1
        made.with_row(grafana.Row(row.name).id(number).grid_pos(GridPos(h=1, w=_ACROSS, x=0, y=y)))
        y += 1
        for place, panel in enumerate(row.panels):
            number += 1
            down, across = divmod(place * _WIDTH, _ACROSS)
            at = GridPos(h=_HEIGHT, w=_WIDTH, x=across, y=y + down * _HEIGHT)
            made.with_panel(_panel(panel, f"{docs}/{row.doc}", docs).id(number).grid_pos(at))
        y += -(-len(row.panels) * _WIDTH // _ACROSS) * _HEIGHT
    return made


def _variable(name: str, values: str, chosen: str, every: str = "") -> grafana.QueryVariable:
    made = grafana.QueryVariable(name).datasource(_SOURCE).query(values)
    made.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    if every:
        made.include_all(True).multi(True).all_value(every)
    return made.current(VariableOption(selected=True, text=chosen, value="$__all" if every else chosen))


def _panel(panel: Panel, page: str, docs: str) -> stat.Panel | timeseries.Panel:
    made = stat.Panel() if panel.stat else timeseries.Panel()
    made.title(panel.question).description(panel.reading).unit(panel.unit).datasource(_SOURCE)
    for place, (text, legend) in enumerate(panel.queries):
        made.with_target(prometheus.Dataquery().ref_id(chr(ord("A") + place)).expr(query(text)).legend_format(legend))
    links: list[Builder[DashboardLink]] = [
        grafana.DashboardLink("What this means").url(page).type(DashboardLinkType.LINK)
    ]
    if panel.alert:
        links.append(grafana.DashboardLink("Runbook").url(runbook_url(panel.alert, docs)).type(DashboardLinkType.LINK))
    made.links(links)
    if steps := _thresholds(panel):
        made.thresholds(grafana.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    return made


def _thresholds(panel: Panel) -> list[Threshold]:
    """Red where the panel's alert would fire, if the panel shows the alert's own signal."""
    shown = {query(text) for text, _ in panel.queries}
    for alert in ALERTS:
        if alert.name == panel.alert and Durations().query(alert.signal) in shown:
            than = Durations().threshold(alert.than)
            if alert.is_ == ">":
                return [Threshold(None, "green"), Threshold(than, "red")]
            above = than if alert.is_ == "<" else than + 1  # "==" is of counts
            return [Threshold(None, "red"), Threshold(above, "green")]
    return [] if panel.red_from is None else [Threshold(None, "green"), Threshold(panel.red_from, "red")]
