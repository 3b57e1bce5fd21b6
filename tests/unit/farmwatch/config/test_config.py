"""The configuration: the origin of each value, and refusals by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from farmwatch.config.config import Config, LoadedConfig, load, setting_rows
from farmwatch.config.layers import (
    MASK,
    SECRET,
    allowed_values,
    from_document,
    from_environment,
    from_flags,
    resolve,
    settings_of,
)
from stream.text.user_errors import ConfigError
from tests.support.paths import ROOT


def _file(folder: Path, text: str) -> Path:
    path = folder / "some.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_any_source_all_values_are_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without file, variables and flags, the configuration is Config()."""
    monkeypatch.chdir(tmp_path)
    loaded = load(None, (), {"HOME": str(tmp_path)})
    assert loaded.config == Config()
    assert set(loaded.origins.values()) == {"default"}


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    """Each layer overrides the weaker ones, and `doctor config` names it."""
    file = _file(tmp_path, "[crawl]\ndelay_s = 2\nretry_s = 2\npage_budget = 2\n")
    variables = {"FARMWATCH_CRAWL_DELAY_S": "3", "FARMWATCH_CRAWL_RETRY_S": "3"}
    loaded = load(file, ["crawl.delay_s=4"], variables)
    crawl = loaded.config.crawl
    assert (crawl.delay_s, crawl.retry_s, crawl.page_budget) == (4.0, 3.0, 2)
    assert loaded.origins["crawl.delay_s"] == "flag"
    assert loaded.origins["crawl.retry_s"] == "env FARMWATCH_CRAWL_RETRY_S"
    assert loaded.origins["crawl.page_budget"] == str(file)
    assert loaded.origins["crawl.name"] == "default"


def test_a_relative_path_of_the_file_is_of_its_folder(tmp_path: Path) -> None:
    """In the file, a relative path is taken from its folder; names, hub ids and values from elsewhere stay."""
    (tmp_path / "models" / "a").mkdir(parents=True)
    file = _file(
        tmp_path,
        """
        log = {url = "sqlite:data", state_folder = "~/state"}
        judge = {ruleset = "mine.toml"}
        score.weights = "w.weights"
        score.thresholds = {binoculars = "t.json", lite-ngram = "name"}
        score.pair = {observer = "models/a", performer = "tiiuae/falcon-7b-instruct"}
        rate = {review = "labels"}
        canary = {file = "/c.jsonl"}
        search.brave = {key_file = "key"}
        search.json_http.mine = {url = "https://s.example/?q={query}", key_file = "key", key_header = "K"}
        kafka.client = {ssl_cafile = "ca.pem", security_protocol = "SSL"}
        """,
    )
    read = load(file, ["tally.deciles=d.json"], {"FARMWATCH_CRAWL_WARC_FOLDER": "warc"}).config
    pair, kafka = read.score.pair, read.kafka.client
    assert (read.log.url, read.log.state_folder) == (f"sqlite:{tmp_path}/data", "~/state")
    assert (read.judge.ruleset, read.score.weights) == (f"{tmp_path}/mine.toml", tmp_path / "w.weights")
    assert read.score.thresholds == {"binoculars": f"{tmp_path}/t.json", "lite-ngram": "name"}
    assert (pair.observer, pair.performer) == (f"{tmp_path}/models/a", "tiiuae/falcon-7b-instruct")
    assert (read.rate.review, read.canary.file) == (f"{tmp_path}/labels", "/c.jsonl")
    assert {read.search.brave.key_file, read.search.json_http["mine"].key_file} == {f"{tmp_path}/key"}
    assert kafka == {"ssl_cafile": f"{tmp_path}/ca.pem", "security_protocol": "SSL"}
    assert (read.tally.deciles, read.crawl.warc_folder) == (Path("d.json"), "warc")
    assert (
        load(_file(tmp_path, 'judge.ruleset = "default"\nlog.url = "kafka:b:9092"'), (), {}).config.judge.ruleset
        == "default"
    )


def test_the_file_in_the_working_folder_is_found_before_the_one_in_xdg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """./farmwatch.toml is the default; without it, $XDG_CONFIG_HOME/farmwatch/farmwatch.toml."""
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "xdg" / "farmwatch"
    home.mkdir(parents=True)
    (home / "farmwatch.toml").write_text('[crawl]\nname = "home"\n')
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert load(None, (), variables).config.crawl.name == "home"
    (tmp_path / "farmwatch.toml").write_text('[crawl]\nname = "here"\n')
    assert load(None, (), variables).config.crawl.name == "here"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[crawl]\ndelay_ms = 5\n", r"crawl\.delay_ms: unknown key .*did you mean delay_s\?"),
        ("[crawler]\n", r"crawler: unknown key .*did you mean crawl\?"),
        ("[crawl]\ndelay_s = 'slow'\n", r"crawl\.delay_s: expected float, got str .*Seconds between the starts"),
        ("[log]\npartitions = 0\n", r"log\.partitions: expected int >= 1"),
        ("crawl = 3\n", r"crawl: expected a table"),
        ("[measure]\ntokenizer = 'Word'\n", r"expected whitespace or words \(from .* 'Word'\)"),
        ("[tally]\nenough_articles = 0\n", r"tally\.enough_articles: expected int >= 1"),
        ("[tally]\nsprt = {clip = inf}\n", r"tally\.sprt: sprt needs a finite clip > 0 .*clip=inf"),
        ("[measure]\nextractor_model = 'm.json'\n", r"measure\.extractor_model: trafilatura takes no model"),
        ("[retention]\ndays = {hits = 91}\n", r"retention: days: hits are kept 90 days at most"),
        ("[score]\ndetectors = []\n", r"score\.detectors.*empty"),
        ("[score]\ndetectors = ['lite-ngram', 'lite-ngram']\n", r"twice"),
        ("[crawl\n", r"not a configuration: not TOML: .*line 1"),
    ],
)
def test_what_a_file_may_not_say_is_refused_by_path(tmp_path: Path, text: str, message: str) -> None:
    """The error names the setting's path and the file."""
    file = _file(tmp_path, text)
    with pytest.raises(ConfigError, match=message):
        load(file, (), {})


def test_what_may_be_set_is_read_from_the_type() -> None:
    """Allowed values are read from a Literal, optional or not; other types show the type's error."""
    assert allowed_values(Annotated[Literal["a", "b"] | None, msgspec.Meta()]) == ("a", "b")
    assert allowed_values(str) == allowed_values(int | None) == ()


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    """A missing file in --config is an error."""
    with pytest.raises(ConfigError, match="no such configuration file"):
        load(tmp_path / "absent.toml", (), {})


_LEAVE_OUT = "leave it out, it is not to be set any more"


@pytest.mark.parametrize(
    ("text", "path", "mend"),
    [
        ("[retention]\npages_days = 9", "retention.pages_days", "write it into the table retention.days"),
        ("[search.brave]\ncount = 9", "search.brave.count", _LEAVE_OUT),
        ("[search.brave]\nkey_env = 'A'", "search.brave.key_env", "such as BRAVE_API_KEY"),
        ("[search.mojeek]\nkey_file = 'A'", "search.mojeek", "[search.json_http.mojeek]"),
        ("[search.marginalia]\npages = 2", "search.marginalia", "[search.json_http.marginalia]"),
        ("[crawl]\nrobots_ttl_s = 9", "crawl.robots_ttl_s", _LEAVE_OUT),
        ("[up]\ndrain_s = 9", "up", "killed 10 s after loop.drain_s"),
        ("[tally.gaussian]\nclip = 9", "tally.gaussian", _LEAVE_OUT),
    ],
)
def test_a_former_setting_says_what_to_do(tmp_path: Path, text: str, path: str, mend: str) -> None:
    """A setting or a table that is gone is an error in a file, a flag and a variable, each with what to do."""
    with pytest.raises(ConfigError, match=re.escape(f"{path}: unknown key (in")) as told:
        load(_file(tmp_path, text), (), {})
    assert mend in str(told.value) and "\n" not in str(told.value)
    setting = f"{path}.{text.split()[1]}" if path in text else path
    with pytest.raises(ConfigError, match=re.escape(mend)):
        from_flags(Config, [f"{setting}=9"])
    with pytest.raises(ConfigError, match=re.escape(mend.replace("leave it out", "unset it"))):
        from_environment(Config, {"FARMWATCH_" + setting.replace(".", "_").upper(): "9"})


def test_each_setting_that_the_changelog_calls_removed_says_what_to_do() -> None:
    """The names with a table in the section Removed are former settings, and no setting of today is one."""
    removed = (ROOT / "CHANGELOG.md").read_text().partition("### Removed")[2].partition("### Fixed")[0]
    names = set(re.findall(rf"`((?:{'|'.join(Config.__struct_fields__)}|up)\.[a-z_.]+)`", removed))
    kafka = ("unavailable_after_s", "fetch_max_wait_s", "retry_backoff_s", "tombstones_kept_s", "local_state_max_age_s")
    measure = ("chunk_mode", "retry_link_code_share", "max_text_bytes", "recycle_pages", "site_cache_bytes")
    names |= {f"kafka.{name}" for name in kafka} | {f"measure.{name}" for name in measure}
    names -= settings_of(Config).keys()  # named there as what replaces one
    assert len(names) > 80
    for name in names:
        with pytest.raises(ConfigError, match=r"unknown key .*; (leave it out|the variable has its own name)"):
            from_flags(Config, [f"{name}=9"])
    for name in settings_of(Config):
        assert from_environment(Config, {"FARMWATCH_" + name.replace(".", "_").upper(): "9"})[0]


def test_an_unknown_variable_is_a_warning_with_the_nearest_name() -> None:
    """A misspelt variable is reported; variables of the test suite are ignored."""
    variables = dict.fromkeys(
        ("FARMWATCH_CRAWL_DELAYS_S", "FARMWATCH_TEST_DATA", "FARMWATCH_REQUIRE_KAFKA", "OTHER"), "3"
    )
    _, warnings = from_environment(Config, variables)
    assert warnings == ["FARMWATCH_CRAWL_DELAYS_S: no such setting; did you mean FARMWATCH_CRAWL_DELAY_S?"]


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("crawl.resolve_to", '{"*": "127.0.0.1:1"}', {"*": "127.0.0.1:1"}),
        ("crawl.resolve_to", '{"*" = "127.0.0.1:1"}', {"*": "127.0.0.1:1"}),
        ("crawl.contact", "[1]", "[1]"),
        ("crawl.contact", "007", "007"),
        ("score.weights", "/some/file", Path("/some/file")),
        ("score.weights", "null", None),
        ("score.detectors", "lite-ngram, binoculars", ["lite-ngram", "binoculars"]),
        ("score.detectors", '["lite-ngram", "binoculars"]', ["lite-ngram", "binoculars"]),
    ],
)
def test_texts_of_flags_and_variables_are_read_by_the_type(path: str, text: str, value: object) -> None:
    """Tables and lists are read as JSON or TOML, lists also with commas; a text is unchanged, and null is none."""
    variable = {f"FARMWATCH_{path.replace('.', '_').upper()}": text}
    for loaded in (load(None, [f"{path}={text}"], {}), load(None, (), variable)):
        section, _, name = path.partition(".")
        assert getattr(getattr(loaded.config, section), name) == value


@pytest.mark.parametrize("flag", ["crawl.delay_s", "crawl.delay=1", "=1"])
def test_flags_of_another_form_are_refused(flag: str) -> None:
    """--set needs PATH=VALUE with an existing path."""
    with pytest.raises(ConfigError):
        from_flags(Config, [flag])


class _Account(msgspec.Struct, frozen=True):
    token: Annotated[str, SECRET] = ""
    """Token of the account."""
    name: str = ""
    hosts: list[str] = []


class _Tree(msgspec.Struct, frozen=True):
    account: _Account = _Account()


def test_secrets_are_known_and_never_named_in_errors() -> None:
    """A setting marked SECRET is recognised, and an error about its type does not show the value."""
    assert settings_of(_Tree)["account.token"].secret
    assert not settings_of(_Tree)["account.name"].secret
    layer = from_document(_Tree, {"account": {"token": 12345}}, "f")
    with pytest.raises(ConfigError) as caught:
        resolve(_Tree, [layer])
    assert "12345" not in str(caught.value)


def test_config_show_masks_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor config` prints the mask for a secret that is set, and an empty secret as empty."""
    monkeypatch.setattr("farmwatch.config.config.Config", _Tree)
    tree, origins = resolve(_Tree, [from_flags(_Tree, ["account.token=hush", "account.name=me"])])
    loaded = LoadedConfig(tree, origins, [], None)  # type: ignore[arg-type]  # a smaller tree stands in
    rows = {path: value for path, value, _ in setting_rows(loaded)}
    assert rows == {"account.token": MASK, "account.name": "me", "account.hosts": []}
    assert "hush" not in str(rows)


def test_a_password_among_the_client_options_is_masked_and_never_in_an_error() -> None:
    """Entries with secret names are masked; an error about the table does not repeat them."""
    flag = 'kafka.client={"sasl_plain_password": "hush", "sasl_mechanism": "PLAIN"}'
    rows = {path: value for path, value, _ in setting_rows(load(None, [flag], {}))}
    assert rows["kafka.client"] == {"sasl_plain_password": MASK, "sasl_mechanism": "PLAIN"}
    with pytest.raises(ConfigError) as caught:
        load(None, ['kafka.client={"sasl_plain_password": "hush"'], {})
    assert "hush" not in str(caught.value)


def test_no_key_of_a_search_is_shown(tmp_path: Path) -> None:
    """Headers, key prefixes, and values in the query of a URL are masked."""
    file = tmp_path / "farmwatch.toml"
    file.write_text(
        """
        [search.searxng]
        url = "https://search.example/path?lang=hush1"
        [search.json_http.mine]
        url = "https://api.example/find?q={query}&page={page}&site=hush2&hush3"
        key_header = "Authorization"
        key_prefix = "Bearer hush4"
        headers = {"X-Client" = "hush5"}
        """
    )
    rows = {path: value for path, value, _ in setting_rows(load(file, [], {}))}
    assert rows["search.searxng.url"] == f"https://search.example/path?lang={MASK}"
    mine = rows["search.json_http"]["mine"]
    assert mine["url"] == f"https://api.example/find?q={{query}}&page={{page}}&site={MASK}&{MASK}"
    assert (mine["key_prefix"], mine["headers"], mine["key_header"]) == (MASK, {"X-Client": MASK}, "Authorization")
    assert "hush" not in str(rows)


@pytest.mark.parametrize(
    ("proxy", "shown"),
    [
        ("http://ann:hush@127.0.0.1:3128", f"http://{MASK}@127.0.0.1:3128"),
        ("http://hush@[::1]:3128/", f"http://{MASK}@[::1]:3128"),
        ("http://127.0.0.1:3128", "http://127.0.0.1:3128"),
        ("http://ann:hush:127.0.0.1:3128", MASK),
        ("http://ann:h@hush@127.0.0.1:3128", MASK),
        ("http://127.0.0.1:3128@ann:hush", MASK),
        ("ann:hush@127.0.0.1:3128", MASK),
        ("", ""),
    ],
)
def test_the_user_of_a_proxy_is_masked(proxy: str, shown: str) -> None:
    """A proxy is shown without user and password; what is no proxy is not shown, for any part may be the password."""
    rows = {path: value for path, value, _ in setting_rows(load(None, [f"crawl.proxy={proxy}"], {}))}
    assert rows["crawl.proxy"] == shown


def test_an_entry_of_a_table_cannot_be_a_flag() -> None:
    """The error for a flag that names an entry of a table names the table, which --set takes whole."""
    with pytest.raises(ConfigError, match=r"did you mean search.json_http"):
        load(None, ["search.json_http.mine.items=results"], {})


def test_every_setting_has_a_variable_of_its_own() -> None:
    """No two settings share an environment name, so that none shadows another."""
    names = [setting.env for setting in settings_of(Config).values()]
    assert len(names) == len(set(names))


NUMBERS = ("nan", "inf", "-inf", "-1e308", "1e308", "-1000000000000000", "1000000000000000")


def _numeric(kind: Any) -> bool:
    if get_origin(kind) in (Annotated, Union, UnionType):
        return any(_numeric(part) for part in get_args(kind) if not isinstance(part, msgspec.Meta))
    return kind in (int, float)


def _written(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """(setting, its form in a file with a number `{}`), also for keys in tables, with their required neighbours."""
    for path, setting in settings_of(kind).items():
        if _numeric(setting.type):
            yield path, f"{path} = {{}}"
        for part in (setting.type, *get_args(setting.type)):
            if not (isinstance(part, type) and issubclass(part, msgspec.Struct)):
                continue
            fields = [field for field in msgspec.structs.fields(part) if _numeric(field.type)]
            in_table = get_origin(setting.type) is dict
            for field in fields:
                rest = "".join(f", {other.name} = 50" for other in fields if other.required and other != field)
                table = f"{{{{{field.name} = {{}}{rest}}}}}"
                yield f"{path}.{field.name}", f"{path} = {{{{mine = {table}}}}}" if in_table else f"{path} = {table}"


SETTINGS = dict(_written(Config))


@pytest.mark.parametrize("path", SETTINGS)
def test_every_number_has_a_range(tmp_path: Path, path: str) -> None:
    """For every setting, NaN, infinite and absurd numbers are refused by name."""
    (settings_path,) = {name for name in settings_of(Config) if path == name or path.startswith(f"{name}.")}
    for number in NUMBERS:
        with pytest.raises(ConfigError, match=rf"^{settings_path}: "):
            load(_file(tmp_path, SETTINGS[path].format(number) + "\n"), (), {})
        name, _, value = SETTINGS[path].format(number).partition(" = ")
        with pytest.raises(ConfigError, match=rf"^{settings_path}: "):
            load(None, [f"{name}={value}"], {})


def test_the_settings_that_are_walked_are_all_of_them() -> None:
    """The walk over settings includes numbers in optional and named tables, and all of [loop] and [up]."""
    named = {"tally.sprt.clip", "search.json_http.count", "score.pair.max_tokens"}
    assert named <= SETTINGS.keys()


def test_a_number_in_a_free_table_is_finite() -> None:
    """Options of kafka-python have no types here, but NaN and infinity are refused."""
    with pytest.raises(ConfigError, match=r"kafka\.client: expected a finite number, got nan"):
        load(None, ['kafka.client={"a" = [nan]}'], {})


@pytest.mark.parametrize(
    "value",
    [
        *("[" * 50_000, "[" * 50_000 + "]" * 50_000, "{a=" * 50_000, "a." * 5_000 + "b = 1"),
        *("1" * 4_400, "0x" + "f" * 50_000, "x" * (1024 * 1024)),
    ],
    ids=lambda value: value[:3],
)
def test_no_text_breaks_the_reading(tmp_path: Path, value: str) -> None:
    """Extremely nested or long values in a file, a flag or a variable give one line and no traceback."""
    texts = [f"[crawl]\ndelay_s = {value}\n", f"[crawl]\nnameservers = {value}\n", f"{value}\n"]
    for text in texts:
        with pytest.raises(ConfigError) as caught:
            load(_file(tmp_path, text), (), {})
        assert len(str(caught.value)) < 1000
    for path in ("crawl.delay_s", "crawl.nameservers", "crawl.resolve_to"):
        variable = {f"FARMWATCH_{path.replace('.', '_').upper()}": value}
        for flags, variables in (([f"{path}={value}"], {}), ([], variable)):
            try:
                assert load(None, flags, variables).config.crawl.nameservers == [value]  # one word in place of another
            except ConfigError as error:
                assert len(str(error)) < 1000


def test_a_file_is_read_whatever_editor_wrote_it(tmp_path: Path) -> None:
    """A byte order mark, as editors on Windows write it, is skipped; a file in another encoding is named."""
    file = tmp_path / "some.toml"
    file.write_bytes(b"\xef\xbb\xbf[crawl]\r\nname = 'x'\r\n")
    assert load(file, (), {}).config.crawl.name == "x"
    file.write_bytes(b"[crawl]\nname = '\xff'\n")
    with pytest.raises(ConfigError, match="not UTF-8, from its byte 17 on"):
        load(file, (), {})
