"""The encoder on a CPU: texts a second, articles an hour, memory, beside the limit of bare matrix products.

    python -m tests.bench.bench_encoder [texts [layers]]

The model has the shape of DeBERTa-v3-large (24 layers, 434 M parameters) with mean pooling and one logit, and random
weights. Texts are random ids, with log-normal lengths of median 400 tokens, cut at 512. A batch of texts goes through
the engine as SCORE calls it: 16 at a time. The limit is the time of the same floating-point operations in one bare
product of large matrices on the same threads, measured before and after. Each count of threads has its own process.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from functools import partial
from typing import Any

from tests.bench.timing import apart, argument, memory_mib, wall_and_cpu_s

WORDS, WIDTH, INNER, HEADS, BUCKETS, LONGEST = 128_100, 1024, 4096, 16, 256, 512
TEXTS_AT_ONCE = 16


def texts_of(count: int) -> list[list[int]]:
    """Token ids, the same in every process."""
    dice = random.Random(11)
    lengths = [min(LONGEST, max(128, int(400 * dice.lognormvariate(0, 0.6)))) for _ in range(count)]
    return [[dice.randrange(10, WORDS) for _ in range(length)] for length in lengths]


def flops(lengths: list[int], layers: int) -> float:
    """Of the matrix products that the texts alone need, without padding."""
    spans = 2 * BUCKETS
    linears = sum(lengths) * 2 * (4 * WIDTH**2 + 2 * WIDTH * INNER)
    attention = sum(4 * length**2 * WIDTH + 4 * length * spans * WIDTH for length in lengths)
    return float(layers * (linears + attention))


def model_of(layers: int, words: int = WORDS) -> Any:
    """A DeBERTa-v3-large of random weights, as transformers has it."""
    import transformers

    config: Any = transformers.AutoConfig.for_model(
        "deberta-v2",
        vocab_size=words,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        position_buckets=BUCKETS,
        relative_attention=True,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
    )
    kind: Any = transformers.AutoModel
    return kind.from_config(config).eval().requires_grad_(False)


def engine_of(layers: int, device: str, dtype: Any) -> tuple[Any, int]:
    """The engine on a model of random weights, and the number of these."""
    import torch

    from scoring.encoder.disentangled import speed_up_attention
    from scoring.encoder.engine import EncoderEngine
    from scoring.encoder.model import EncoderModel, window_logits
    from scoring.encoder.settings import EncoderSettings
    from scoring.engine.linears import widen_linears

    model = model_of(layers).to(device, dtype)
    parameters = sum(tensor.numel() for tensor in model.parameters())
    widen_linears(model)
    speed_up_attention(model)
    head = [torch.randn(1, WIDTH).to(device, dtype), torch.zeros(1).to(device, dtype)]
    loaded: Any = EncoderModel(partial(window_logits, model, head, 0), None, WORDS, 0, torch.device(device))  # type: ignore[arg-type]
    return EncoderEngine(loaded, EncoderSettings(model="random", device=device), reload=lambda: loaded), parameters


def one_side(threads: int, count: int, layers: int) -> dict[str, float]:
    """Measure in this process."""
    import torch

    from scoring.engine.linears import onednn_linear, onednn_multiplies

    torch.set_num_threads(threads)
    engine, parameters = engine_of(layers, "cpu", torch.float32)

    left, right = torch.randn(2048, WIDTH), torch.randn(INNER, WIDTH)

    def product_s() -> float:
        """Seconds of CPU per floating-point operation."""
        multiply = onednn_linear if onednn_multiplies() else torch.nn.functional.linear
        started = time.process_time()
        for _ in range(20):
            multiply(left, right, None)
        return (time.process_time() - started) / (20 * 2 * left.numel() * len(right))

    texts = texts_of(count)
    engine.read_ids(texts[:1])
    before = product_s()

    def work() -> None:
        for start in range(0, count, TEXTS_AT_ONCE):
            engine.read_ids(texts[start : start + TEXTS_AT_ONCE])

    wall_s, spent_s = wall_and_cpu_s(work)
    per_flop = statistics.mean([before, product_s()])
    counts = engine.work
    return {
        "parameters": parameters,
        "wall_s": wall_s,
        "cpu_s": spent_s,
        "limit_s": flops([len(text) for text in texts], layers) * per_flop,
        "gflops": 1e-9 / per_flop,
        "padding": counts.padding / (counts.padding + counts.tokens),
        "peak_mib": memory_mib("VmHWM"),
    }


def main() -> None:
    count, layers = argument(1, 32), argument(2, 24)
    lengths = [len(text) for text in texts_of(count)]
    for threads in (1, 2):
        # Of the measuring process. Its waiting threads sleep, so that on a busy machine too CPU seconds are work.
        os.environ |= {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        found = apart(one_side, threads, count, layers)
        core_s = found["cpu_s"] / count
        print(
            f"{threads} threads, {found['parameters'] / 1e6:.0f} M parameters, {count} texts of"
            f" {statistics.mean(lengths):.0f} tokens on average: {1 / core_s:.2f} texts a core-second,"
            f" {3600 * threads / core_s:,.0f} articles an hour of {threads} free cores"
            f" ({3600 * count / found['wall_s']:,.0f} by the clock, load {os.getloadavg()[0]:.1f});"
            f" {found['limit_s'] / found['cpu_s']:.2f} of the limit at {found['gflops']:.0f} GFLOP/s a core;"
            f" padding {found['padding']:.1%}; peak {found['peak_mib']:,.0f} MiB"
        )


if __name__ == "__main__":
    main()
