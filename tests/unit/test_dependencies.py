"""Every imported package is declared, also if another package depends on it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from tests.support.paths import ROOT

PRODUCT = ("crawler", "farmwatch", "filters", "lab", "replay", "scoring", "stream")
_LIKE_AN_IMPORT = re.compile(r"^ *(?:import|from) +(\w+)", re.MULTILINE)  # or a line of a text
OPTIONAL = {"triton"}  # comes with torch where there is a build of it; farmwatch asks before it imports it


def distributions(folders: tuple[str, ...]) -> dict[str, str]:
    """Distribution of each module that files in these folders import, with one of the files."""
    owners, found = packages_distributions(), {}
    own = {*PRODUCT, "dashboards", "tests", *sys.stdlib_module_names}
    known = set(own)
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if known.issuperset(_LIKE_AN_IMPORT.findall(text)):  # most files, and to parse is slow
            continue
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for module in {name.partition(".")[0] for name in names} - own:
                known.add(module)
                found[normal(owners.get(module, [module])[0])] = str(path.relative_to(ROOT))
    return found


def declared(*, tests: bool) -> set[str]:
    """Distributions of the base install and of every extra; those of developers only for tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    chosen = [name for name in extras if tests or name not in ("bench", "dev")]
    lines = [*project["dependencies"], *(line for name in chosen for line in extras[name])]
    return {normal(re.split(r"[\[<>=~!; ]", line)[0]) for line in lines}


def normal(name: str) -> str:
    """A distribution's name in its one normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(
    ("folders", "tests"), [(PRODUCT, False), (("dashboards", "tests"), True)], ids=["product", "tests"]
)
def test_every_import_is_declared(folders: tuple[str, ...], tests: bool) -> None:
    """In pyproject.toml: under dependencies or an extra, and for what only tests import, under dev or bench."""
    missing = distributions(folders).keys() - declared(tests=tests) - OPTIONAL
    assert {name: distributions(folders)[name] for name in missing} == {}
