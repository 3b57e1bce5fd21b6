"""Pictures of the Grafana dashboards for the docs: `python -m tests.tools.dashboard_pictures docs/images`.

Each is drawn from the dashboard's JSON, with the values of a real Prometheus that scraped a real run of some minutes.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from markupsafe import Markup

from farmwatch.console import pictures
from stream.text.wording import lasting
from tests.browser.chromium import launched, program
from tests.browser.screenshots import save
from tests.ops.real_run import RealRun, real_run
from tests.ops.servers import SCRAPE_S
from tests.support.paths import ROOT

_VARIABLES = {"$__rate_interval": "30s", "$source": "all", "$run": ".*", "[1h]": "[30s]"}  # the run is short
_TOP, _HEIGHT = 18, 120  # px of a graph
_COLOURS = ("#0b57d0", "#c2410c", "#0f766e", "#6b5b95", "#7c6a4d", "#64748b")
_SHOWN = 6  # series of a legend
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_STYLE = """
body { margin: 12px; font: 13px system-ui, sans-serif; }
body { display: grid; grid-template-columns: repeat(3, 1fr); gap: 14px 20px; }
h1, h2 { grid-column: 1 / -1; margin: 0; font-size: 18px; }
h2 { font-size: 15px; border-bottom: 1px solid #ccc; }
h3 { margin: 0 0 8px; font-size: 13px; }
.picture { width: 100%; }
.stat { margin: 30px 0; font-size: 40px; color: #0b57d0; text-align: center; }
ul { margin: 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: 0 12px; font-size: 11px; }
"""


class Series(NamedTuple):
    """A line of a graph."""

    name: str
    points: list[tuple[float, float]]  # time (s) and value


def value_text(value: float, unit: str) -> str:
    """A value in its unit, short."""
    if unit == "percentunit":
        return f"{value:.3g}%" if (value := 100 * value) % 1 else f"{value:.0f}%"
    if unit == "s" and abs(value) >= 1:
        return lasting(value)
    size, name = next(((size, name) for size, name in _BYTES if abs(value) >= size), (1, "B"))
    if unit in ("bytes", "Bps"):
        return f"{value / size:.3g} {name}{'/s' if unit == 'Bps' else ''}"
    number = f"{value:,.0f}" if value % 1 == 0 or abs(value) >= 10 else f"{value:.2g}"
    return number + {"s": " s", "ops": "/s", "reqps": "/s"}.get(unit, "")


def graph(title: str, unit: str, series: Sequence[Series], begin_s: float, end_s: float) -> Markup:
    """Lines over the time, with three levels."""
    values = [value for line in series for _, value in line.points]
    low, high = min([0.0, *values]), max(values)
    high = high if high > low else low + 1

    def down(value: float) -> float:
        return _TOP + _HEIGHT * (1 - (value - low) / (high - low))

    drawn = [pictures.level(down(value), value_text(value, unit)) for value in (low, (low + high) / 2, high)]
    for number, line in enumerate(series):
        places = [((at - begin_s) / (end_s - begin_s), down(value)) for at, value in line.points]
        curve = pictures.curve(places, (), _TOP, _HEIGHT)
        drawn.append(Markup('<g class="s{}">{}</g>').format(number % len(_COLOURS), curve))
    return pictures.picture(title, [line.name for line in series], _TOP + _HEIGHT + 4, drawn)


def panel_html(panel: dict[str, Any], run: RealRun, end_s: float) -> Markup:
    """A panel: its question, its graph or number, its legend."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    series = [line for target in panel["targets"] for line in _series(target, run, end_s)]
    if not series:
        body = Markup("<p>no data</p>")
    elif panel["type"] == "stat":
        words = [line.name or value_text(line.points[-1][1], unit) for line in series]
        told = ", ".join(words if panel["title"].startswith("Which") else [value_text(series[0].points[-1][1], unit)])
        body = Markup('<p class="stat">{}</p>').format(told)
    else:
        body = graph(panel["title"], unit, series, run.prometheus.started_s, end_s)
    keys = [
        Markup('<li><span style="color: {}">■</span> {}</li>').format(_COLOURS[number % len(_COLOURS)], line.name)
        for number, line in enumerate(series[:_SHOWN])
        if panel["type"] != "stat"
    ]
    more = Markup("<li>and {} more</li>").format(len(series) - _SHOWN) if len(series) > _SHOWN and keys else ""
    return Markup("<section><h3>{}</h3>{}<ul>{}{}</ul></section>").format(
        panel["title"], body, Markup("").join(keys), more
    )


def _series(target: dict[str, str], run: RealRun, end_s: float) -> Iterator[Series]:
    query = target["expr"]
    for variable, value in _VARIABLES.items():
        query = query.replace(variable, value)
    for one in run.prometheus.history(query, end_s):
        name = target["legendFormat"]
        for label in re.findall(r"{{(\w+)}}", name):
            name = name.replace(f"{{{{{label}}}}}", one["metric"].get(label, ""))
        points = [(float(at), float(value)) for at, value in one["values"] if math.isfinite(float(value))]
        if points:
            yield Series(name, points)


def page_of(board: dict[str, Any], run: RealRun, end_s: float) -> str:
    """A dashboard as a page of HTML."""
    style = _STYLE + "".join(f".s{n} .curve {{ stroke: {colour}; }}\n" for n, colour in enumerate(_COLOURS))
    style = (ROOT / "farmwatch/console/static/pictures.css").read_text(encoding="utf-8") + style
    parts = [
        Markup("<h2>{}</h2>").format(panel["title"]) if panel["type"] == "row" else panel_html(panel, run, end_s)
        for panel in board["panels"]
    ]
    head = f'<!doctype html><meta charset="utf-8"><style>{style}</style>'
    begin, end = (f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S}" for at_s in (run.prometheus.started_s, end_s))
    return f"{head}<h1>{board['title']}, {begin} to {end} UTC</h1>{Markup('').join(parts)}"


def main(target: Path) -> None:
    """Run everything once and write a picture of each dashboard."""
    with TemporaryDirectory() as folder, real_run(Path(folder)) as run, launched(program()) as browser:
        time.sleep(5 * SCRAPE_S)
        end_s = time.time()
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        for file in sorted((ROOT / "dashboards/grafana").glob("*.json")):
            page.set_content(page_of(json.loads(file.read_text(encoding="utf-8")), run, end_s))
            save(page.screenshot(full_page=True), target / f"grafana-{file.stem}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
