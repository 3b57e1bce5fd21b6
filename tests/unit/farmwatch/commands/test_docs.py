"""Each page of the docs: its links, paths, modules and command lines are valid, and no page is left out."""

from __future__ import annotations

import inspect
import itertools
import re
import shlex
from pathlib import Path

import pytest

from crawler.fetch.address_guard import FixedResolver
from crawler.fetch.jobs import RequestKind
from crawler.sources.catalogue import SOURCES
from crawler.stages.preflight import check_settings
from crawler.warc import pages as warc_pages
from crawler.warc.exchange import RECORD_TYPES
from farmwatch.commands.cli import app
from farmwatch.config.config import Config, load
from farmwatch.config.layers import from_flags, settings_of
from farmwatch.metrics import ALL
from tests.bench.studies import scale
from tests.support.paths import DOCS, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
GENERATED = {"cli.md", "configuration.md", "metrics.md"}
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_SHELL = ("", "sh", "bash", "console")
_PACKAGES = "crawler|farmwatch|filters|replay|scoring|stream"
_PATH = re.compile(rf"(?<![\w/.])((?:{_PACKAGES}|tests|docs)/[a-z][\w./-]*[\w/])")
# allowed by CONTRIBUTING.md
_NEW = {
    *("crawler/sources/example.py", "filters/extraction/shout_text.py", "scoring/loud/", "scoring/sites/example.py"),
    "tests/unit/scoring/loud/",
}
_NO_SETTINGS = {"retention.ms", "retention.bytes", "log.sqlite", "score.requests", "score.requests.replay"}
_RUN = re.compile(r"python -m (tests[\w.]+|farmwatch[\w.]+)")


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _headings(page: Path) -> set[str]:
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in found}


def _commands(page: Path) -> list[list[str]]:
    found = []
    for language, block in _FENCE.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines() if language in _SHELL else ():
            for part in re.split(r" \| ", line.strip().removeprefix("$ ")):
                if part.startswith("farmwatch ") and "DIGITS" not in part and "…" not in part:
                    words = shlex.shlex(part, posix=True, punctuation_chars="|&;<>")
                    words.whitespace_split = True
                    mine = itertools.takewhile(lambda word: not word or word[0] not in "|&;<>", words)
                    found.append(["/dev/stdin" if word == "-" else word for word in list(mine)[1:]])
    return found


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Each link to a file of the project names an existing file, and each link to a section an existing heading."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in _headings(target), link


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_paths_of_code_exist(page: Path) -> None:
    """Each file, folder and module that a page names exists."""
    text = page.read_text(encoding="utf-8")
    for path in _PATH.findall(re.sub(r"https?://\S+", "", text)):
        assert path in _NEW or (ROOT / path.removesuffix(".")).exists(), path
    for module in _RUN.findall(text):
        file = ROOT / module.replace(".", "/")
        assert file.is_dir() or file.with_suffix(".py").exists(), module


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=_name)
def test_settings_and_metrics_exist(page: Path) -> None:
    """Each setting and each metric that a page names exists."""
    text = page.read_text(encoding="utf-8")
    if page.name == "CHANGELOG.md":
        return
    known = {f"farmwatch_{metric.name}" + ("_total" if metric.kind == "counter" else "") for metric in ALL}
    assert set(re.findall(r"\bfarmwatch_[a-z_]*[a-z]\b(?!…)", text)) - {"farmwatch_log"} <= known
    settings = settings_of(Config)
    sections = "|".join({path.partition(".")[0] for path in settings})
    for name in re.findall(rf"`((?:{sections})\.[a-z_.]+)`", text):
        is_setting = name in settings or any(path.startswith(f"{name}.") for path in settings)
        parent = name.rpartition(".")[0]
        assert is_setting or parent in settings or name in _NO_SETTINGS, name


@pytest.mark.parametrize(
    ("page", "arguments"),
    [(_name(page), arguments) for page in PAGES if page.name not in GENERATED for arguments in _commands(page)],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_command_line_is_understood(page: str, arguments: list[str]) -> None:
    """Each command line has an existing command, with existing options and settings."""
    command, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    assert callable(command)
    common = bound.arguments.get("common")
    from_flags(Config, list(common.set) if common is not None else [])


def test_a_command_enters_the_folder_of_the_user_as_that_user() -> None:
    """The folder of the systemd units is private: an administrator's shell cannot `cd` to it."""
    commands = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines() if "sudo -u" in line]
    assert len(commands) > 1
    assert [line for line in commands if "sudo -u farmwatch env -C /var/lib/farmwatch /opt/" not in line] == []


def test_many_pages_have_command_lines() -> None:
    """The pages have many command lines, so that the test above reads something."""
    assert sum(bool(_commands(page)) for page in PAGES) >= 10
    assert len(_commands(ROOT / "README.md")) >= 10


def test_the_page_of_archives_names_settings_records_and_reasons() -> None:
    """The page lists the settings of archives, the types of records, and each reason to skip a record in an import."""
    page = (DOCS / "reference" / "warc.md").read_text(encoding="utf-8")
    assert all(f"`{path}`" in page for path in settings_of(Config) if path.startswith("crawl.warc_"))
    assert all(f"| `{record}` |" in page for record in RECORD_TYPES)
    found = re.findall(r"""_NoPage\("(\w+)"|Skipped\([^)]*?, "(\w+)"\)""", inspect.getsource(warc_pages))
    reasons = {name for names in found for name in names if name}
    assert {"revisit", "known", "unusable_url"} <= reasons
    assert all(f"`{name}`" in page for name in (*reasons, *(kind.value for kind in RequestKind)))


def test_the_tables_of_sources_are_configurations(tmp_path: Path) -> None:
    """Each TOML on the page of sources loads, and every source has a section."""
    page = (DOCS / "reference" / "sources.md").read_text(encoding="utf-8")
    file = tmp_path / "farmwatch.toml"
    for table in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
        file.write_text(table)
        assert load(file, [], {}).config.search
    assert file.exists() and all(f"\n## {name}\n" in page for name in (*SOURCES, "json_http"))


def test_the_configuration_of_a_test_web_is_fit(tmp_path: Path) -> None:
    """A crawl starts with the TOML of the how-to page, and asks no DNS."""
    page = (DOCS / "how-to" / "crawl.md").read_text(encoding="utf-8").partition("## Crawl a test web")[2]
    file = tmp_path / "trial.toml"
    file.write_text(page.partition("```toml\n")[2].partition("```")[0])
    settings = load(file, [], {}).config.crawl
    check_settings(settings)
    assert FixedResolver(settings.resolve_to).addresses == {"127.0.0.1"}


def test_the_index_names_every_page() -> None:
    """docs/README.md links each other page below docs/; the page of alerts links the runbooks."""
    index = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("README.md", "how-to/monitor.md"))
    index = index.replace("(runbook/", "(how-to/runbook/")
    for page in DOCS.rglob("*.md"):
        assert page.name == "README.md" or f"({page.relative_to(DOCS)})" in index, page.name


def test_the_page_of_scale_has_the_tables_of_its_study() -> None:
    """The tables of docs/explanation/scale.md follow from the costs in the docs and the limits in the settings."""
    page = (DOCS / "explanation" / "scale.md").read_text(encoding="utf-8")
    for rows in (scale.NEEDS, scale.BREAKS):
        assert f"\n\n{scale.table(rows)}\n\n" in page, "python -m tests.bench.studies.scale"


def test_pages_named_by_the_code_exist() -> None:
    """Each docs/….md that a docstring, a message or a help text names exists."""
    for package in _PACKAGES.split("|"):
        for file in (ROOT / package).rglob("*"):
            if file.suffix in (".py", ".toml", ".html"):
                for path in re.findall(r"\bdocs/[\w/-]+\.md", file.read_text(encoding="utf-8")):
                    assert (ROOT / path).exists(), f"{file.relative_to(ROOT)}: {path}"
