"""A tree of frozen structs, filled from layers: flag > environment > file > default, with the origin of each value.

A path is the dotted name of one setting, such as crawl.delay_s; its environment variable is FARMWATCH_CRAWL_DELAY_S.
Unknown keys and wrong types are errors that name the path and its origin, because an ignored setting would be noticed
months later.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from crawler.settings import PROXY
from stream.text.toml import BadToml, as_toml, read_toml
from stream.text.user_errors import ConfigError
from stream.text.wording import nearest

MOST_BYTES = 1024 * 1024
"""Of a configuration file."""
ENV_PREFIX = "FARMWATCH_"
_NOT_SETTINGS = ("FARMWATCH_TEST_", "FARMWATCH_REQUIRE_")  # read by the test suite
SECRET = msgspec.Meta(extra={"secret": True})  # Annotated[str, SECRET]: shown masked
MASK = "********"
_SECRET_NAME = re.compile(r"password|passphrase|secret|token|credential", re.IGNORECASE)
_KEY_NAME = re.compile(r"(^|_)key(_|$)")  # a value in place of a key's name may be the key itself
_FIELDS = re.compile(r"(\{\w+\})*")  # a value of a template without a secret of its own
_QUERY_VALUE = re.compile(r"(?<=[?&;])([^=&;#]*=)?([^&;#]+)")
_CONSTANTS = """
canary.every_s crawl.connect_timeout_s crawl.delay_slow_cap_s crawl.dns_*_s crawl.idle_timeout_s crawl.link_depth
crawl.network_wait_s crawl.park_cap_s crawl.redirects crawl.refetch_error_s crawl.refetch_redirection_s
crawl.refetch_refused_s crawl.reopen_s crawl.requests_per_page crawl.robots_* crawl.sitemap_* crawl.total_timeout_s
crawl.url_cap crawl.warc_bytes crawl.warc_s kafka.*_s kafka.compression loop.backoff_cap_s loop.breaker_least
loop.breaker_window loop.lag_every_s loop.linger_s loop.max_* loop.watchdog_s measure.*_per_site measure.chunk_mode
measure.max_text_bytes measure.recycle_pages measure.retry_link_code_share measure.site_cache_bytes rate.canary_least
rate.half_width score.batch_texts score.pair.compile score.pair.kernel score.pair.suspects_file score.remembered_texts
search.*.at_once search.*.timeout_s search.*.tries search.brave.count search.commoncrawl.key_* tally.gaussian*
"""  # patterns of former settings with nothing to do in their place
_FORMER = {  # names of former settings and tables -> what to do in their place
    "retention.?*_days": "write it into the table retention.days, such as days = {pages = 90}",
    "retention.?*_bytes": "write it into the table retention.bytes, such as bytes = {pages = 50_000_000_000}",
    "search.commoncrawl.quota_*": "leave it out, this source has no quota",
    "search.mojeek.*": "leave it out, a key is enough; other values: write the whole of [search.json_http.mojeek]",
    "search.marginalia.*": "leave it out, a key is enough; or write the whole of [search.json_http.marginalia]",
    "search.*.key_env": "the variable has its own name, such as BRAVE_API_KEY; search.NAME.key_file names a file",
    "rate.errors*": "leave it out: canaries correct the share by verdicts",
    "up.*": "leave it out: a process is killed 10 s after loop.drain_s",
} | dict.fromkeys(_CONSTANTS.split(), "leave it out, it is not to be set any more")
_LONG = 100  # characters of a name or a value that an error shows
_SHOWN = (str, int, float, bool)  # types that an error may show; a table may hold a password

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `path`, its type, default and owner. `secret` values are masked wherever they are shown."""

    path: str
    type: Any
    default: Any
    secret: bool
    owner: type[msgspec.Struct]

    @property
    def env(self) -> str:
        """Name of the environment variable."""
        return _env(self.path)

    @property
    def meaning(self) -> str:
        """What it sets, and in which unit."""
        return meanings_of(self.owner).get(self.path.rpartition(".")[2], "")


class RawValue(NamedTuple):
    """A value before it is checked, and its origin; `text` marks a string to be parsed."""

    value: Any
    origin: str
    text: bool


Layer = Mapping[str, RawValue]  # by path


_fields_of = cache(msgspec.structs.fields)  # evaluates every type hint


@cache
def settings_of(kind: type[msgspec.Struct], prefix: str = "") -> Mapping[str, Setting]:
    """Every setting below `kind` by path, in the order of declaration."""
    settings: dict[str, Setting] = {}
    for field in _fields_of(kind):
        path = prefix + field.name
        if _is_struct(field.type):
            settings.update(settings_of(field.type, path + "."))
            continue
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        metas = get_args(field.type)[1:] if get_origin(field.type) is Annotated else ()
        owner = next(base for base in kind.__mro__ if field.name in inspect.get_annotations(base))
        settings[path] = Setting(path, field.type, default, SECRET in metas, owner)
    return settings


@cache
def meanings_of(owner: type[msgspec.Struct]) -> Mapping[str, str]:
    """Meaning of each field that the struct declares: the docstring after it in the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def from_document(kind: type[msgspec.Struct], document: Mapping[str, Any], origin: str) -> Layer:
    """The layer of a parsed TOML file. Raises ConfigError on an unknown key."""
    return {path: RawValue(value, origin, text=False) for path, value in _walk(kind, document, "", origin)}


def from_environment(kind: type[msgspec.Struct], environment: Mapping[str, str]) -> tuple[Layer, list[str]]:
    """The layer of FARMWATCH_ variables, and a warning for each that was never a setting.

    Raises ConfigError on a former setting, because without it another number, limit or retention would be in force.
    """
    by_name = {setting.env: path for path, setting in settings_of(kind).items()}
    values: dict[str, RawValue] = {}
    warnings = []
    for name in sorted(environment):
        if name in by_name:
            values[by_name[name]] = RawValue(environment[name], f"env {name}", text=True)
        elif name.startswith(ENV_PREFIX) and not name.startswith(_NOT_SETTINGS):
            if mend := _mend(name):
                raise ConfigError(f"{name}: no such setting{mend.replace('leave it out', 'unset it')}")
            warnings.append(f"{name}: no such setting{_suggest(name, by_name)}")
    return values, warnings


def from_flags(kind: type[msgspec.Struct], assignments: Sequence[str]) -> Layer:
    """The layer of `path=value` flags. Raises ConfigError on an unknown path or a missing '='."""
    known = settings_of(kind)
    values: dict[str, RawValue] = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        path = path.strip()
        if not equals:
            raise ConfigError(f"--set {assignment[:_LONG]!r}: expected PATH=VALUE, such as crawl.delay_s=5")
        if path not in known:
            raise ConfigError(f"{path[:_LONG]}: unknown key (from --set){_mend(_env(path)) or _suggest(path, known)}")
        values[path] = RawValue(value, "flag", text=True)
    return values


def resolve(kind: type[S], layers: Sequence[Layer]) -> tuple[S, dict[str, str]]:
    """Build `kind` from layers, the first one strongest; returns the origin of each value too.

    Raises ConfigError with the path and the origin of an invalid value.
    """
    known = settings_of(kind)
    chosen = {path: layer[path] for layer in reversed(layers) for path in layer}
    values = {path: _convert(known[path], *raw) for path, raw in chosen.items()}
    return _build(kind, values, ""), {path: chosen[path].origin if path in chosen else "default" for path in known}


def _build(kind: type[S], values: Mapping[str, Any], prefix: str) -> S:
    arguments = {}
    for field in _fields_of(kind):
        path = prefix + field.name
        if _is_struct(field.type):
            arguments[field.name] = _build(field.type, values, path + ".")
        elif path in values:
            arguments[field.name] = values[path]
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:  # a __post_init__ that refuses a combination
        raise ConfigError(f"{prefix.rstrip('.') or 'configuration'}: {error}") from error


def _walk(
    kind: type[msgspec.Struct], document: Mapping[str, Any], prefix: str, origin: str
) -> Iterator[tuple[str, Any]]:
    fields = {field.name: field for field in _fields_of(kind)}
    for key, value in document.items():
        path = prefix + key
        field = fields.get(key)
        if field is None:
            mend = _mend(_env(path)) or _suggest(key, fields)
            raise ConfigError(f"{path[:_LONG]}: unknown key (in {origin}){mend}")
        if not _is_struct(field.type):
            yield path, value
        elif isinstance(value, dict):
            yield from _walk(field.type, value, path + ".", origin)
        else:
            raise ConfigError(f"{path}: expected a table [{path}], got {type(value).__name__} (in {origin})")


def _convert(setting: Setting, raw: Any, origin: str, text: bool) -> Any:
    try:
        value = _parse(setting.type, raw) if text else raw
        converted = msgspec.convert(value, setting.type, strict=not text, dec_hook=_decode)
        _refuse_not_finite(value)
        return converted
    except (ValueError, TypeError, OverflowError) as error:  # msgspec's errors are ValueErrors
        name = setting.path.rpartition(".")[2]
        is_secret = setting.secret or get_origin(_bare(setting.type)) is dict or _KEY_NAME.search(name)
        may_show = isinstance(raw, _SHOWN) and not is_secret
        plain = _without_secrets(name, raw) if may_show else ""
        shown = f", the value is {repr(plain[:_LONG]) if isinstance(plain, str) else as_toml(plain)}"
        allowed = allowed_values(setting.type)
        if allowed:
            *most, last = map(shown_value, allowed)
            reason = f"expected {', '.join(most)}{' or ' if most else ''}{last}"
        else:
            reason = str(error).replace("Expected", "expected").replace("`", "")
            if text:  # all values of flags and variables are texts at first
                reason = reason.replace(", got str", "")
        place = f"from {origin}{shown if may_show else ''}"
        raise ConfigError(f"{setting.path}: {reason} ({place}). {setting.meaning}") from error


def _refuse_not_finite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {value}")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _refuse_not_finite(part)


def allowed_values(kind: Any) -> tuple[str, ...]:
    """The values of a setting with a few allowed ones, in order; () for any other type."""
    kind = _bare(kind)
    if get_origin(kind) in (Union, UnionType):
        return tuple(value for part in get_args(kind) for value in allowed_values(part))
    return tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()


def shown_value(value: str) -> str:
    """One of the allowed values; the empty one in quotes."""
    return value or '""'


def _decode(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"expected {kind.__name__}, got {type(value).__name__}")


def encode(value: Any) -> Any:
    """A setting's value as in JSON, with paths as text."""
    return msgspec.to_builtins(value, enc_hook=str)


def masked(setting: Setting, value: Any) -> Any:
    """A value with its secrets masked.

    Masked are secrets, table entries whose name is that of a secret, headers, the prefix of a key, the user of a proxy
    (all of it, if it is no proxy), and the values in the query of a URL, where keys are written by mistake.
    """
    if setting.secret:
        return MASK if value else encode(value)
    return _without_secrets(setting.path.rpartition(".")[2], encode(value))


def _without_secrets(name: str, plain: Any) -> Any:
    if isinstance(plain, dict):
        return {
            key: MASK if name == "headers" or _SECRET_NAME.search(key) else _without_secrets(key, entry)
            for key, entry in plain.items()
        }
    if isinstance(plain, str) and name == "key_prefix":
        return MASK if plain else plain
    if isinstance(plain, str) and name == "proxy" and plain:
        found = PROXY.fullmatch(plain)  # of anything else, any part may be the password
        return f"http://{MASK}@{found[2]}" if found and found[1] else plain if found else MASK
    if isinstance(plain, str) and name == "url":

        def hidden(match: re.Match[str]) -> str:
            return (match[1] or "") + (match[2] if _FIELDS.fullmatch(match[2]) else MASK)

        return _QUERY_VALUE.sub(hidden, plain)
    return plain


def _parse(kind: Any, raw: str) -> Any:
    """Parse lists and tables in text from JSON or TOML; a list may also be words between commas."""
    bare = _bare(kind)
    if bare is str:
        return raw
    stripped = raw.strip()
    if stripped == "null" and type(None) in get_args(bare):
        return None
    if stripped[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(stripped)
        except (msgspec.DecodeError, RecursionError):
            pass
        try:
            return read_toml(f"value = {stripped}", MOST_BYTES)["value"]
        except BadToml as error:
            raise ValueError(f"neither JSON nor TOML: {error}") from None
    if get_origin(bare) in (list, tuple, set, frozenset) or bare in (list, tuple):
        return [part.strip() for part in stripped.split(",") if part.strip()]
    return raw


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _env(path: str) -> str:
    return ENV_PREFIX + path.replace(".", "_").upper()


def _mend(variable: str) -> str:
    """What to do about a former setting or table, named as a variable; "" for a name that never was one."""
    names = (variable, f"{variable}_")  # a table has the pattern of its settings
    mends = (mend for path, mend in _FORMER.items() if any(fnmatchcase(name, _env(path)) for name in names))
    return next((f"; {mend}" for mend in mends), "")


def _suggest(name: str, known: Mapping[str, Any]) -> str:
    return f"; did you mean {meant}?" if (meant := nearest(name, known)) else ""
