"""Checks of the machine: Python, packages, disk, GPU and ports."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from farmwatch.config.member_names import names_folder
from farmwatch.daemon.endpoints import PortTaken, addresses_of, listen
from farmwatch.doctor.check_result import Results, Subject, fail, ok, warn

PACKAGES = ("stream", "crawler", "filters", "scoring", "replay", "farmwatch")
PLAIN_PAGE = "<html><body><article><p>" + "One sentence of text. " * 20 + "</p></article></body></html>"
_GIB = 1024**3
_DISK_FAIL_BYTES, _DISK_WARN_BYTES = 1 * _GIB, 10 * _GIB

_owners = cache(packages_distributions)  # a look at all installed packages takes longer than all other checks


def python(_: Subject) -> Results:
    """The version of Python, because a copied tree may run under any."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok(version) if sys.version_info >= (3, 11) else fail(version, "use Python 3.11 or newer")


def imports(_: Subject) -> Results:
    """`stream` and `filters` come from this distribution: another one may have packages of these common names."""
    home = folder_of("farmwatch")
    owners = _owners()
    others = {name: sorted(set(owners.get(name, ())) - {"farmwatch"}) for name in PACKAGES}
    strays = [f"{name} comes from {folder_of(name)}" for name in PACKAGES if folder_of(name) != home]
    strays += [f"{name} is also in {', '.join(of)}" for name, of in others.items() if of]
    if strays:
        yield fail(", ".join(strays), "install farmwatch in a virtual environment of its own")
    else:
        yield ok(f"all packages from {home}")


def folder_of(package: str) -> Path | None:
    """The folder from which a package is imported."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).resolve().parent.parent if spec is not None and spec.origin else None


def trafilatura(_: Subject) -> Results:
    """Trafilatura finds the text of a plain page; MEASURE needs it with any extractor."""
    try:
        import trafilatura as library
    except ImportError as error:
        yield fail(str(error), "pip install 'trafilatura>=2.3.1' lxml_html_clean")
        return
    if library.extract(PLAIN_PAGE):
        yield ok(str(library.__version__))
    else:
        yield fail("extracts nothing from a plain page", "reinstall trafilatura and lxml")


def gpu(at: Subject) -> Results:
    """The GPU, which only pairs of language models need."""
    score = at.config.score
    if names := output_of("nvidia-smi", "--query-gpu=name", "--format=csv,noheader"):
        yield ok(", ".join(names.splitlines()))
    elif not score.uses_pair or score.pair.device == "cpu":
        yield ok("none, and none is needed by the configured detectors")
    else:
        yield warn("nvidia-smi sees none", "mend the driver, or set score.pair.device to cpu with small models")


def ports(at: Subject) -> Results:
    """Whether the roles can serve; a port in use may be that of a running role.

    Raises ConfigError for an address of another machine.
    """
    taken = []
    for what, table, host, port in addresses_of(at.config, at.roles):
        try:
            listen(host, port, table).close()
        except PortTaken:
            taken.append(f"{host}:{port} ({what})")
    if taken:
        mend = "if no farmwatch runs here, set metrics.port or console.port to another one, or to 0 for any"
        yield warn(f"ports in use: {', '.join(taken)}", mend)
    else:
        yield ok("metrics and console can be served")


def disk(at: Subject) -> Results:
    """Room for the log, and for local state on Kafka. Reading a log needs no write permission."""
    folder = names_folder(at.config).absolute()
    existing = next(path for path in (folder, *folder.parents) if os.path.exists(path))  # noqa: PTH110 - no error
    free = shutil.disk_usage(existing).free
    room = f"{free / _GIB:.1f} GiB free at {existing}"
    if not os.access(existing, os.W_OK):
        yield warn(f"{room}; this user can read the log and not write it", "run `farmwatch up` as the folder's owner")
    elif free < _DISK_FAIL_BYTES:
        yield fail(room, "free disk, or lower the retention of `pages`")
    elif free < _DISK_WARN_BYTES:
        yield warn(room, "months of pages want more; watch it")
    else:
        yield ok(room)


def output_of(*command: str) -> str:
    """A program's output; nothing if it is not installed or fails."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
