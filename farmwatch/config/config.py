"""The configuration of a process: one TOML file, composed of every package's settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from crawler.settings import CrawlSettings
from crawler.sources.settings import SearchSettings
from farmwatch.config.layers import (
    MOST_BYTES,
    from_document,
    from_environment,
    from_flags,
    masked,
    resolve,
    settings_of,
)
from farmwatch.config.settings import CanarySettings, ConsoleSettings, LogSettings, MetricsSettings
from filters.measure.extractors import EXTRACTORS
from filters.settings import JudgeSettings, MeasureSettings
from scoring.detectors.settings import ScoreSettings
from scoring.rates.settings import RateSettings
from scoring.sites.settings import TallySettings
from stream.kafka.settings import KafkaSettings
from stream.processing.loop import LoopSettings
from stream.schema.topics import RetentionSettings
from stream.text.toml import BadToml, read_toml
from stream.text.user_errors import ConfigError

FILE_NAME = "farmwatch.toml"
_FILES = (  # settings that are paths
    *("canary.file", "crawl.signature.key", "crawl.warc_folder", "kafka.client.ssl_*file", "log.state_folder"),
    *("measure.extractor_model", "rate.review", "score.weights", "search.*key_file", "tally.deciles"),
)
_NAMES_OR_FILES = ("judge.ruleset", "measure.perplexity_model", "score.thresholds.*")
_MODELS = ("score.encoder.model", "score.pair.observer", "score.pair.performer")  # hub ids or folders


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every setting of farmwatch; each field is a table of the file."""

    log: LogSettings = LogSettings()
    kafka: KafkaSettings = KafkaSettings()
    retention: RetentionSettings = RetentionSettings()
    search: SearchSettings = SearchSettings()
    crawl: CrawlSettings = CrawlSettings()
    measure: MeasureSettings = MeasureSettings()
    judge: JudgeSettings = JudgeSettings()
    score: ScoreSettings = ScoreSettings()
    tally: TallySettings = TallySettings()
    rate: RateSettings = RateSettings()
    canary: CanarySettings = CanarySettings()
    loop: LoopSettings = LoopSettings()
    metrics: MetricsSettings = MetricsSettings()
    console: ConsoleSettings = ConsoleSettings()

    def __post_init__(self) -> None:
        if self.measure.extractor_model and not EXTRACTORS[self.measure.extractor].takes_model:
            raise ValueError(f"measure.extractor_model: {self.measure.extractor} takes no model: set it to nothing")


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration, the origin of each value, and warnings about the environment."""

    config: Config
    origins: Mapping[str, str]
    warnings: Sequence[str]
    file: Path | None


def load(
    file: Path | None = None, flags: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> LoadedConfig:
    """Read the configuration. `flags` are `path=value`; `file` None looks for the default one. Raises ConfigError."""
    variables = os.environ if environment is None else environment
    if file is None:
        home = variables.get("XDG_CONFIG_HOME") or str(Path(variables.get("HOME", "~")).expanduser() / ".config")
        candidates = (Path(FILE_NAME), Path(home) / "farmwatch" / FILE_NAME)
        file = next((candidate for candidate in candidates if candidate.is_file()), None)
    elif not file.is_file():
        raise ConfigError(f"{file}: no such configuration file")
    from_variables, warnings = from_environment(Config, variables)
    layers = [from_flags(Config, flags), from_variables]
    if file is not None:
        layers.append(from_document(Config, _beside(file.parent, "", _parse_file(file)), str(file)))
    config, origins = resolve(Config, layers)
    return LoadedConfig(config, origins, warnings, file)


def setting_rows(loaded: LoadedConfig) -> list[tuple[str, Any, str]]:
    """(path, value as in JSON, origin) of every setting, secrets masked."""
    rows = []
    for path, setting in settings_of(Config).items():
        value: Any = loaded.config
        for name in path.split("."):
            value = getattr(value, name)
        rows.append((path, masked(setting, value), loaded.origins[path]))
    return rows


def _beside(folder: Path, path: str, value: Any) -> Any:
    """The value of a file's setting, with relative paths taken from the file's folder."""
    if isinstance(value, dict):
        return {key: _beside(folder, f"{path}.{key}" if path else key, part) for key, part in value.items()}
    if not isinstance(value, str) or not value or folder == Path():
        return value
    scheme, place = value[: len("sqlite:")], value.removeprefix("sqlite:")
    if path == "log.url" and scheme == "sqlite:" and place:
        return scheme + _joined(folder, place)
    is_file = (
        any(fnmatchcase(path, pattern) for pattern in _FILES)
        or (
            any(fnmatchcase(path, of) for of in _NAMES_OR_FILES)
            and ("/" in value or value.endswith((".toml", ".json", ".ngrams")))
        )
        or (path in _MODELS and (value.startswith(".") or os.path.isdir(folder / value)))  # noqa: PTH112  # raises nothing
    )
    return _joined(folder, value) if is_file else value


def _joined(folder: Path, place: str) -> str:
    return place if place.startswith("~") else str(folder / place)


def _parse_file(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        return read_toml(content.decode("utf-8-sig"), MOST_BYTES)
    except BadToml as error:
        raise ConfigError(f"{file}: not a configuration: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8, from its byte {error.start + 1} on: save it so") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
