"""The image's build steps in a bare root, and its entry point there: not as root, writing to /tmp and /data alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.deploy.bare_image import build_images
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.image,
    pytest.mark.skipif(os.geteuid() != 0, reason="a bare root is made by root alone"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is not here: apt-get install it"),
]


def test_the_image_runs_the_demo_as_nobody_special(tmp_path: Path) -> None:
    """Each step of the Dockerfile succeeds; the demo then carries its web through every stage."""
    images = build_images(ROOT / "deploy" / "Dockerfile", tmp_path, stages=("build", "base"))
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
