"""The encoder with int8 linear layers on a CPU: how much faster, and how far its scores move.

    python -m tests.bench.studies.encoder_int8 [layers]

Weights are quantised by tensor, activations as they come, by torch's `quantize_dynamic` on oneDNN. The model is that of
`bench_encoder`: random weights have none of the large activations of trained ones, which int8 rounds worst.
"""

from __future__ import annotations

import copy
import time
from typing import Any

from tests.bench.bench_encoder import WIDTH, model_of
from tests.bench.timing import argument

WORDS = 2_000
LENGTHS = (150, 300, 400, 512, 512, 400, 256, 384)


def main() -> None:
    import torch

    from scoring.encoder.disentangled import speed_up_attention
    from scoring.engine.linears import widen_linears

    torch.set_num_threads(1)
    torch.manual_seed(1)
    plain = model_of(argument(1, 24), WORDS)
    quantised = copy.deepcopy(plain)
    torch.backends.quantized.engine = "onednn"
    quantisation: Any = torch.ao.quantization
    quantised = quantisation.quantize_dynamic(quantised, {torch.nn.Linear}, dtype=torch.qint8)
    widen_linears(plain)
    texts = [torch.randint(10, WORDS, (1, length)) for length in LENGTHS]
    head = torch.randn(WIDTH) / WIDTH**0.5
    scores, spent = [], []
    for model in (plain, quantised):
        speed_up_attention(model)
        with torch.inference_mode():
            model(input_ids=texts[0])
            started = time.process_time()
            of = [model(input_ids=ids).last_hidden_state.mean(1)[0] @ head for ids in texts]
            spent.append(time.process_time() - started)
        scores.append(torch.stack(of))
    moved = (scores[0] - scores[1]).abs()
    deviation = float(scores[0].std())
    print(
        f"{spent[0]:.1f} s of CPU in float32, {spent[1]:.1f} s in int8: {spent[0] / spent[1]:.2f} times as fast; scores"
        f" move by {float(moved.mean()) / deviation:.2f}, at most {float(moved.max()) / deviation:.2f} standard"
        f" deviations of the texts' scores; correlation {float(torch.corrcoef(torch.stack(scores))[0, 1]):.4f}"
    )


if __name__ == "__main__":
    main()
