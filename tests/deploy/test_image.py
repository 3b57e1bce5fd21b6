"""The image's build steps in a bare root, and its entry point: not as root, writing only to /tmp and /data."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.deploy.bare_image import build_images
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.image,
    pytest.mark.skipif(os.geteuid() != 0, reason="a bare root is made by root alone"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is not here: apt-get install it"),
]
# The command by which Triton builds its launcher (triton/runtime/build.py)
_EXTENSION = (
    "printf '#include <Python.h>\\n#include <stdlib.h>\\n' > /tmp/one.c"
    " && gcc /tmp/one.c -O3 -shared -fPIC -o /tmp/one.so"
    """ -I$(python3 -c 'import sysconfig; print(sysconfig.get_paths("posix_prefix")["include"])')"""
)


def test_the_image_runs_the_demo_as_nobody_special(tmp_path: Path) -> None:
    """The demo runs its web through every stage. The target `gpu` has the compiler."""
    images = build_images(ROOT / "deploy" / "Dockerfile", tmp_path, stages=("build", "base", "compiler"))
    image = images["base"]
    assert image.user == "10001"
    version = image.run("--version")
    assert version.returncode == 0, version.stdout
    demo = image.run("demo")
    assert demo.returncode == 0, demo.stdout
    assert "of 16 sites" in demo.stdout
    refused = image.run("up")
    assert refused.returncode == 2, refused.stdout
    assert "crawl.contact" in refused.stdout
    compiler = replace(images["compiler"], entrypoint=["sh", "-c"])
    assert compiler.user == "10001"
    built = compiler.run(_EXTENSION)
    assert built.returncode == 0, built.stdout
