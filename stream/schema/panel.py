"""Panels: fixed samples of sites, each under `panel/<version>` of the topic `control`, kept for ever."""

from __future__ import annotations

import msgspec

from stream.log.contract import Log, Output
from stream.schema.control_rows import ControlRows, read_row
from stream.schema.topics import CONTROL

PANEL_KEY = b"panel/"


class SitePanel(msgspec.Struct, frozen=True, kw_only=True):
    """A random sample of the sites that had a scored article when it was drawn. Times in milliseconds UTC."""

    v: int = 1
    version: int  # 1 for the first panel of a log
    made_at: int
    made_by: str = ""
    seed: int  # with it and the same sites the sample is drawn again
    drawn_from: int  # sites
    sites: list[str]  # sorted
    follow_turns: bool = False  # these are crawled as with crawl.follow_turns


def read_panels(log: Log) -> dict[int, SitePanel]:
    """Version -> panel, in order. Raises BadRecord, SchemaTooNew."""
    panels: dict[int, SitePanel] = {}
    for message in ControlRows(log).new():
        if not message.key.startswith(PANEL_KEY) or message.value is None:
            continue
        panel = read_row(message, SitePanel, "panel")
        panels[panel.version] = panel
    return dict(sorted(panels.items()))


def write_panel(log: Log, panel: SitePanel) -> None:
    """Append a panel."""
    log.append([Output(CONTROL, 0, panel_key(panel.version), msgspec.msgpack.encode(panel))])


def panel_key(version: int) -> bytes:
    """The key of a panel's row."""
    return PANEL_KEY + f"{version:04}".encode()
