"""A log with sites that share templates."""

from __future__ import annotations

import random

from filters.structure.tag_paths import PLACES
from stream.log.contract import Log, Output, partition_of
from stream.schema.records import SiteState, Template, encode
from stream.schema.topics import SITES, TEMPLATES, all_topics

PARTITIONS = 3
ONE, OTHER = (random.Random(seed).randbytes(PLACES) for seed in "ab")


def template(site: str, sketch: bytes, name: str = "1") -> Output:
    """A row of the topic of templates."""
    record = Template(id=name, site=site, url=f"https://{site}/{name}", sketch=sketch)
    return Output(TEMPLATES, partition_of(site, PARTITIONS), f"{site} {name}".encode(), encode(record))


def row(site: str, verdict: str) -> Output:
    return Output(
        SITES, partition_of(site, PARTITIONS), site.encode(), encode(SiteState(id=site, site=site, verdict=verdict))
    )


def fill(log: Log) -> None:
    """Four sites with the template ONE, two with OTHER, one with its own, one whose row was removed."""
    log.create(all_topics(PARTITIONS, "e"))
    near = bytes([ONE[0] ^ 1]) + ONE[1:]
    log.append([template(site, ONE) for site in ("a.example", "b.example", "x.c.example")])
    log.append([template("y.c.example", near), template("a.example", OTHER, "2"), template("z.example", OTHER)])
    log.append([template("alone.example", random.Random(9).randbytes(PLACES)), template("gone.example", ONE)])
    log.append([template("short.example", b"old")])
    log.append([Output(TEMPLATES, partition_of("gone.example", PARTITIONS), b"gone.example 1", None)])
    log.append([row("a.example", "llm"), row("b.example", "human"), row("x.c.example", "llm"), row("z.example", "llm")])
