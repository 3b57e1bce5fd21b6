"""The pictures of the console in the docs, of the demo's log: `python -m tests.browser.screenshots docs/images`."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from PIL import Image

from farmwatch.config.config import Config, load
from tests.browser.chromium import launched, program, tab
from tests.browser.served import replay, served
from tests.support.processes.demo_run import run_demo

_SIZE = {"width": 1280, "height": 960}
_SITE = "happytailguide.example"
_PICTURES = {
    "answer": "/answer",
    "site": f"/site?site={_SITE}",
    "page": f"/page?url=http%3A//{_SITE}/syndicated/copy&ruleset=c4",
}


def main(target: Path) -> None:
    """Run the demo and write the pictures."""
    target.mkdir(exist_ok=True)
    kept = Path(gettempdir()) / "farmwatch-demo"  # the pictures have this name
    with TemporaryDirectory() as folder, ExitStack() as end:
        kept.mkdir()
        end.callback(shutil.rmtree, kept)
        run_demo(kept)
        config = load(kept / "farmwatch.toml", environment={}).config
        replay(config, "--ruleset", "c4")
        _write(target, config, Path(folder))


def _write(target: Path, config: Config, folder: Path) -> None:
    with (
        launched(program()) as browser,
        served(config, folder) as console,
        tab(browser, console.url, viewport=_SIZE, color_scheme="light") as shown,
    ):
        for name, path in _PICTURES.items():
            picture = Image.open(BytesIO(shown.open(path).screenshot()))
            picture.quantize(256).save(target / f"console-{name}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
