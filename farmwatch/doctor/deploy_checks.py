"""Checks of a deployment besides the installation: user, folders, secrets, brokers, metrics, service."""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from crawler.sources.catalogue import SOURCES
from crawler.sources.settings import KeyedSettings
from farmwatch.config.config import LoadedConfig, setting_rows
from farmwatch.config.layers import MASK
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import check_log_url
from farmwatch.doctor.check_result import Results, Subject, fail, ok, warn
from stream.text.wording import one_line

_ASK_S = 5.0
_LOCAL = ("127.0.0.1", "::1", "localhost")
_CONTAINER_MARKS: tuple[Path, ...] = (Path("/.dockerenv"), Path("/run/.containerenv"))
_PROC = Path("/proc")


def user(_: Subject) -> Results:
    """The user has no permissions beyond farmwatch's own files."""
    if os.geteuid() == 0:
        yield warn("this is root", "run as a user of its own: deploy/ has units, an image and manifests that do")
    else:
        yield ok(f"user {os.geteuid()}")


def folders(at: Subject) -> Results:
    """Each folder that farmwatch writes is writable, and holds nothing that others may read."""
    config = at.config
    written = {"log" if config.log.url.startswith("sqlite:") else "local state": names_folder(config).absolute()}
    if config.crawl.warc_folder:
        written["archive"] = Path(config.crawl.warc_folder).absolute()
    for what, folder in written.items():
        place = next(path for path in (folder, *folder.parents) if path.exists())
        if not os.access(place, os.W_OK | os.X_OK):
            yield fail(f"{what}: {place} cannot be written", f"make {folder} for user {os.geteuid()}, mode 0700")
        elif place == folder and folder.stat().st_mode & 0o077:
            yield warn(f"{what}: {folder} is open to others", f"chmod 700 {folder}")
        else:
            yield ok(f"{what}: {folder}")


def secrets(at: Subject) -> Results:
    """Files with passwords or keys are closed to other users."""
    search = at.config.search
    tables = [*(getattr(search, name) for name in SOURCES), *search.json_http.values()]
    keyed = (table for table in tables if isinstance(table, KeyedSettings) and table.key_file)
    keys = [Path(table.key_file).expanduser() for table in keyed]
    keys += [Path(key).expanduser()] if (key := at.config.crawl.signature.key) else []
    rows = setting_rows(LoadedConfig(at.config, defaultdict(str), (), None))
    files = [*([at.file] if at.file and any(MASK in str(value) for _, value, _ in rows) else []), *keys]
    for file in files:
        try:
            is_open = file.stat().st_mode & 0o007
        except OSError as error:
            yield fail(f"{file}: {error.strerror}", "mount the secret there, or name another file")
            continue
        yield (
            warn(f"{file}: every user may read it", f"chmod o= {file}") if is_open else ok(f"{file}: closed to others")
        )
    if not files:
        yield ok("no file holds any")


def brokers(at: Subject) -> Results:
    """Every server of a Kafka log accepts a connection, not only the first one."""
    for host, port in check_log_url(at.config):
        try:
            socket.create_connection((host, port), _ASK_S).close()
        except OSError as error:
            mend = "start it, open the way to it, or take it out of log.url"
            yield fail(one_line(f"{host}:{port}: {error.strerror or error}"), mend)
        else:
            yield ok(f"{host}:{port} answers")


def metrics(at: Subject) -> Results:
    """Prometheus can reach the page of each role from elsewhere, at a port that stays."""
    settings = at.config.metrics
    if not settings.port:
        yield warn("metrics.port is 0: another one at each start", "set metrics.port, so that Prometheus can be told")
    elif settings.host in _LOCAL:
        mend = "set metrics.host to 0.0.0.0 or an address of this machine, and keep strangers off the port"
        yield warn(f"metrics.host is {settings.host}: only this machine can scrape", mend)
    else:
        yield ok(f"{settings.host}:{settings.port} and the ports after it")


def service(at: Subject, environment: Mapping[str, str] = os.environ) -> Results:
    """The service manager that restarts it, and whether its data survives."""
    if environment.get("KUBERNETES_SERVICE_HOST"):
        where = "Kubernetes"
    elif any(mark.exists() for mark in _CONTAINER_MARKS):
        where = "a container"
    elif environment.get("INVOCATION_ID"):
        where = "systemd"
    else:
        mend = "deploy/ has units for systemd, a compose file and manifests (docs/how-to/deploy.md)"
        yield ok(f"started by hand; {mend}")
        return
    folder = names_folder(at.config).absolute()
    mounts = {line.split()[1] for line in (_PROC / "mounts").read_text().splitlines()}
    is_kept = any(str(path) in mounts for path in (folder, *folder.parents) if path != Path("/"))
    if where != "systemd" and not is_kept and at.config.log.url.startswith("sqlite:"):
        yield fail(f"in {where}, and {folder} is on no volume: the log ends with it", "mount a volume there")
    else:
        yield ok(f"in {where}")
