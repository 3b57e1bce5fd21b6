"""The steps of `deploy/Dockerfile`, run in bare roots of this machine, without a container daemon.

Supports the file's instructions: ARG, FROM, RUN, COPY, ENV, WORKDIR, USER, EXPOSE, ENTRYPOINT, CMD. A base image is a
debootstrap of its Debian release. Needs root.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.paths import ROOT

_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_READ_ONLY = """
set -e
mount --bind {root} {root}
mount -o remount,bind,ro {root}
mount -t tmpfs tmpfs {root}/tmp
mount -t tmpfs -o mode=0700,uid={user},gid={user} tmpfs {root}/data
mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm
mount -t proc proc {root}/proc
exec /usr/sbin/chroot --userspec={user}:{user} {root} /bin/sh -c {command}
"""


@dataclass
class Image:
    """One stage of the build: its files, and the start of its containers."""

    root: Path
    env: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    user: str = "0"
    workdir: str = "/"
    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)

    def run(self, *command: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        """Start a container's process with its user and a file system that is read-only except for /tmp and /data."""
        within = shlex.quote(f"cd {self.workdir} && exec {shlex.join([*self.entrypoint, *(command or self.cmd)])}")
        script = _READ_ONLY.format(root=self.root, user=self.user, command=within)
        return _execute(["unshare", "--mount", "--pid", "--fork", "sh", "-c", script], self.env, timeout_s)


def build_images(dockerfile: Path, folder: Path, stages: Collection[str]) -> dict[str, Image]:
    """These stages, by name. Raises AssertionError with the output of a failed step."""
    images: dict[str, Image] = {}
    arguments: dict[str, str] = {}
    image, wanted = Image(folder), True
    for line in dockerfile.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if not line or word == "#":
            continue
        if word == "ARG":
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif word == "FROM":
            base, _, name = rest.partition(" AS ")
            wanted = name in stages
            if not wanted:
                continue
            image = _stage(folder / name, images.get(base), arguments)
            images[name] = image
        elif not wanted:
            continue
        elif word == "RUN":
            _run(image, rest)
        elif word == "COPY":
            _copy(image, images, rest.split())
        elif word == "ENV":
            image.env |= dict(pair.partition("=")[::2] for pair in shlex.split(rest))
        elif word == "WORKDIR":
            image.workdir = rest
        elif word == "USER":
            image.user = rest.partition(":")[0]
        elif word in ("ENTRYPOINT", "CMD"):
            setattr(image, word.lower(), json.loads(rest))
        else:
            assert word == "EXPOSE", f"an instruction that is not known here: {line}"
    return images


def _stage(root: Path, base: Image | None, arguments: dict[str, str]) -> Image:
    if base is None:
        release = arguments["BASE"].removeprefix("debian:").removesuffix("-slim")
        bare = root.parent / release
        if not bare.exists():
            made = _execute(["debootstrap", "--variant=minbase", release, str(bare)], dict(os.environ), 600)
            assert made.returncode == 0, made.stdout
        base = Image(bare)
    _execute(["cp", "-a", str(base.root), str(root)], dict(os.environ), 300)
    return Image(root, dict(base.env), base.user, base.workdir, list(base.entrypoint), list(base.cmd))


def _run(image: Image, command: str) -> None:
    for file, place in ((Path("/etc/resolv.conf"), "etc/resolv.conf"), (_CERTIFICATES, "run/certificates.crt")):
        shutil.copy(file, image.root / place)
    machine = {name: value for name, value in os.environ.items() if name.startswith("PIP_DEFAULT")}
    env = {**machine, **image.env, "PIP_CERT": "/run/certificates.crt", "DEBIAN_FRONTEND": "noninteractive"}
    within = f"exec /usr/sbin/chroot {image.root} /bin/sh -ec {shlex.quote(command)}"
    script = f"mount -t proc proc {image.root}/proc && {within}"
    done = _execute(["unshare", "--mount", "--pid", "--fork", "sh", "-c", script], env, 900)
    assert done.returncode == 0, f"RUN {command}\n{done.stdout}"


def _copy(image: Image, images: dict[str, Image], words: list[str]) -> None:
    source = ROOT
    if words[0].startswith("--from="):
        source = images[words.pop(0).removeprefix("--from=")].root
    *files, to = words
    target = image.root / to.strip("/")
    for file in files:
        place = source / file.strip("/")
        if place.is_dir():
            shutil.copytree(place, target, symlinks=True, dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(place, target)


def _execute(command: list[str], env: dict[str, str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=env, timeout=timeout_s, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
