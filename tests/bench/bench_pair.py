"""The pair engine and the plain loop on a CPU: documents per second, peak memory, equality, effect of the shape.

    python -m tests.bench.bench_pair [documents [rounds]]

The loop reads one document at a time and holds two full logit tensors (tests/bench/pair_reference.py: the authors'
formulas, whole models of transformers, fp32). The engine has its default settings on a CPU. Each side runs in separate
processes with one thread, in turn; a figure is the median of the rounds. The pairs have GPT-2's architecture and
vocabulary (50,257 words), random weights, and 4 layers; the width varies, because it decides the share of matrix
products. The floor is the time of these products alone, in the engine's own batches: bodies' linear layers and heads.
Documents are random ids, with log-normal lengths of median 200 tokens, cut at 512.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

from tests.bench.timing import apart, argument, memory_mib, wall_and_cpu_s

WORDS, LAYERS, LONGEST = 50_257, 4, 512
WIDTHS = (128, 256, 768)
ROUNDS = 3
SIDES = ("loop", "loop, both scores", "engine")


def documents(count: int) -> list[list[int]]:
    """Token ids, the same in every process."""
    dice = random.Random(11)
    lengths = [min(LONGEST, max(16, int(200 * dice.lognormvariate(0, 0.8)))) for _ in range(count)]
    return [[dice.randrange(WORDS) for _ in range(length)] for length in lengths]


def model_of(width: int, seed: int) -> Any:
    """A GPT-2 with random weights, wide enough to make the two models differ."""
    import torch
    import transformers

    config: Any = transformers.AutoConfig.for_model(
        "gpt2", n_embd=width, n_layer=LAYERS, n_head=width // 64, vocab_size=WORDS, initializer_range=0.05
    )
    torch.manual_seed(seed)
    causal: Any = transformers.AutoModelForCausalLM
    return causal.from_config(config).eval().requires_grad_(False)


def one_side(side: str, width: int, count: int) -> dict[str, Any]:
    """Measure in this process: time, memory above the models, scores."""
    import torch

    torch.set_num_threads(1)
    texts, scores = documents(count), list[tuple[float, float | None]]()
    observer, performer = model_of(width, 1), model_of(width, 2)
    if side == "engine":
        from scoring.pair.body import fast_body
        from scoring.pair.engine import PairEngine
        from scoring.pair.models import LanguageModel, PairModels
        from scoring.pair.scores import PairReading
        from scoring.pair.settings import PairSettings
        from scoring.pair.vocabulary_pass import Head

        pair = [
            LanguageModel(name, fast_body(model.transformer), Head(model.lm_head.weight))
            for name, model in (("observer", observer), ("performer", performer))
        ]
        models = PairModels(pair[0], pair[1], None, -1, torch.device("cpu"))
        settings = PairSettings(device="cpu", max_tokens=LONGEST, min_tokens=2)
        engine = PairEngine(models, settings)
        engine.read_ids(texts[:2])

        def work() -> None:
            read = [result for result in engine.read_ids(texts) if isinstance(result, PairReading)]
            scores.extend((result.binoculars, result.fast_detectgpt) for result in read)

    else:
        from tests.bench.pair_reference import reference_loop

        both = side != "loop"
        reference_loop(observer, performer, texts[:2], both=both)

        def work() -> None:
            read = reference_loop(observer, performer, texts, both=both)
            scores.extend((one.binoculars, one.fast_detectgpt) for one in read)

    Path("/proc/self/clear_refs").write_text("5")  # the peak restarts
    before = memory_mib()
    wall_s, spent_s = wall_and_cpu_s(work)
    answer = {"scores": scores, "wall_s": wall_s, "cpu_s": spent_s, "above_mib": memory_mib("VmHWM") - before}
    if side == "engine":
        counts = engine.work
        answer["padding"] = counts.padding / (counts.padding + counts.tokens)
        answer["floor_s"] = _floor(models, [len(text) for text in texts], settings.token_budget)
    return answer


def _floor(models: Any, lengths: list[int], budget: int) -> float:
    """CPU seconds of the matrix products alone: heads on the tokens, linear layers on the tokens and padding."""
    import torch

    from scoring.engine.linears import WideLinear
    from scoring.engine.tokens import batches
    from tests.bench.pair_reference import head_products

    spent = 0.0
    with torch.inference_mode():
        for batch in batches(lengths, budget):
            tokens, padded = sum(lengths[at] for at in batch), len(batch) * max(lengths[at] for at in batch)
            width = models.observer.head.weight.shape[1]
            hidden, wide = torch.randn(padded, width), torch.randn(padded, 4 * width)
            inputs = {width: hidden, 4 * width: wide}
            started = time.process_time()
            head_products(hidden[:tokens], hidden[:tokens], models.observer.head, models.performer.head)
            for model in (models.observer, models.performer):
                for layer in model.body.modules():
                    if isinstance(layer, WideLinear):
                        layer(inputs[layer.weight.shape[1]])
            spent += time.process_time() - started
    return spent


def main() -> None:
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}  # of the measuring processes
    count, rounds = argument(1, 24), argument(2, ROUNDS)
    lengths = [len(text) for text in documents(count)]
    print(
        f"{count} documents of {min(lengths)} to {max(lengths)} tokens, mean {statistics.mean(lengths):.0f};"
        f" {WORDS} words, {LAYERS} layers, fp32, one thread; medians of {rounds} rounds"
    )
    print(f"{'width':>5} {'side':18} {'docs/CPU-s':>10} {'docs/s':>7} {'of loop':>7} {'peak MiB':>8} {'floor':>6}")
    for width in WIDTHS:
        answers: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
        for _ in range(rounds):
            for side in SIDES:
                answers[side].append(apart(one_side, side, width, count))
        middle = {
            side: {name: statistics.median(one[name] for one in found) for name in ("cpu_s", "wall_s", "above_mib")}
            for side, found in answers.items()
        }
        for side, found in middle.items():
            floor = statistics.median(one["floor_s"] for one in answers[side]) if side == "engine" else None
            print(
                f"{width:5} {side:18} {count / found['cpu_s']:10.2f} {count / found['wall_s']:7.2f}"
                f" {middle['loop']['cpu_s'] / found['cpu_s']:7.2f} {found['above_mib']:8.0f}"
                + (f" {floor / found['cpu_s']:6.0%}" if floor is not None else "")
            )
        ours, theirs = answers["engine"][0], answers["loop, both scores"][0]
        differences = [
            max(
                abs(one[at] - other[at]) / max(1.0, abs(other[at]))
                for one, other in zip(ours["scores"], theirs["scores"], strict=True)
            )
            for at in (0, 1)
        ]
        print(
            f"{'':5} scores differ by at most {differences[0]:.1e} (Binoculars), {differences[1]:.1e} (Fast-DetectGPT);"
            f" padding {ours['padding']:.1%}"
        )


if __name__ == "__main__":
    main()
