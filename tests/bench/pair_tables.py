"""The tables of `python -m tests.bench.pair_bench`: each a method that measures and returns plain numbers."""

from __future__ import annotations

import copy
import gc
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from scoring.errors import BadParameters
from scoring.pair.settings import PairSettings

if TYPE_CHECKING:
    from scoring.pair.engine import PairEngine
    from scoring.pair.models import PairModels
    from scoring.pair.vocabulary_pass import Kernel, TokenSums
    from tests.bench.pair_reference import FalconShape, ReferenceScores

FAILED = "failed"  # key of a table's text in place of figures
Table = dict[str, Any]
Documents = list[list[int]]


class Plan(NamedTuple):
    device: str
    dtype: str
    shape: FalconShape
    tokens: int  # of a full document
    documents: int  # of the engine, per measurement
    looped: int  # of the loop, per measurement
    exact: int  # of the loop in float64
    budget: int  # tokens per batch
    budgets: Sequence[int]
    square: int  # side of the product that gives the limit
    rounds: int  # the best one counts
    tolerance: float  # whose scores are compared with the loop's


def plan_of(*, tiny: bool) -> Plan:
    """The measurement on a GPU, or the small one that runs anywhere."""
    from tests.bench.pair_reference import FalconShape

    if tiny:
        shape = FalconShape(hidden=64, layers=2, heads=4, words=512)
        return Plan("cpu", "float32", shape, 64, 12, 4, 4, 256, (128, 512), 256, 1, 1e-4)
    budgets = (4_096, 8_192, 16_384, 32_768, 65_536)
    return Plan("cuda", "bfloat16", FalconShape(), 512, 128, 24, 6, 16_384, budgets, 8_192, 2, 0.01)


class Bench:
    """One run: the pair, and a method for each table."""

    def __init__(self, plan: Plan) -> None:
        import torch

        from scoring.pair.models import LanguageModel, PairModels
        from scoring.pair.vocabulary_pass import Head

        self.plan, self.torch = plan, torch
        self.device = torch.device(plan.device)
        self.on_card = self.device.type == "cuda"
        self.dice = random.Random(2024)  # documents of a measurement, not a secret
        self.models = [self._model(seed) for seed in (1, 2)]
        self.documents = self._documents([plan.tokens] * plan.documents)
        self.mixed = self._documents(self._lengths(plan.documents * 2))
        self.limit_flops = 0.0

        def pair(of: Callable[[Any], Any]) -> PairModels:
            observer, performer = (
                LanguageModel(name, of(model.base_model), Head(model.get_output_embeddings().weight))
                for name, model in zip(("observer", "performer"), self.models, strict=True)
            )
            return PairModels(observer, performer, None, -1, self.device)

        self._pair = pair

    def _model(self, seed: int) -> Any:
        import transformers

        torch, shape = self.torch, self.plan.shape
        size = {"hidden_size": shape.hidden, "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads}
        kind = {"multi_query": True, "parallel_attn": True, "new_decoder_architecture": False, "alibi": False}
        config: Any = transformers.AutoConfig.for_model("falcon", vocab_size=shape.words, bias=False, **size, **kind)
        torch.manual_seed(seed)
        from_config: Any = transformers.AutoModelForCausalLM.from_config
        with self.device:  # weights are drawn on the device
            model = from_config(config, dtype=getattr(torch, self.plan.dtype))
        return model.eval().requires_grad_(False)

    def _documents(self, lengths: Sequence[int]) -> Documents:
        return [[self.dice.randrange(self.plan.shape.words) for _ in range(length)] for length in lengths]

    def _lengths(self, count: int) -> list[int]:
        """Log-normal about 0.6 of the longest, between an eighth of it and itself: many are cut, as articles are."""
        longest = self.plan.tokens
        drawn = (int(0.6 * longest * self.dice.lognormvariate(0, 0.8)) for _ in range(count))
        return [min(longest, max(longest // 8, length)) for length in drawn]

    def _engine(self, pair: PairModels, budget: int | None = None) -> PairEngine:
        from scoring.pair.engine import PairEngine

        plan = self.plan
        size: dict[str, Any] = {"max_tokens": plan.tokens, "min_tokens": 2, "batch_tokens": budget or plan.budget}
        return PairEngine(pair, PairSettings(device=plan.device, **size))

    def seconds(self, work: Callable[[], object], rounds: int | None = None) -> float:
        """The best of some rounds, with the device idle before and after."""
        best = float("inf")
        for _ in range(rounds or self.plan.rounds):
            self._settle()
            started = time.perf_counter()
            work()
            self._settle()
            best = min(best, time.perf_counter() - started)
        return best

    def _settle(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def _empty(self) -> None:
        gc.collect()
        if self.device.type == "cuda":
            self.torch.cuda.empty_cache()
            self.torch.cuda.reset_peak_memory_stats(self.device)

    def machine(self) -> Table:
        """GPU, versions, and the limit to which all GPU figures relate."""
        import transformers

        torch, side = self.torch, self.plan.square
        versions = {
            "torch": str(torch.__version__),
            "triton": _version("triton"),
            "transformers": str(transformers.__version__),
            "dtype": self.plan.dtype,
        }
        if not self.on_card:
            return {"card": "none (CPU)", **versions}
        a, b = (torch.randn(side, side, device=self.device, dtype=self.models[0].dtype) for _ in range(2))
        torch.mm(a, b)
        self.limit_flops = 10 * 2 * side**3 / self.seconds(lambda: [torch.mm(a, b) for _ in range(10)])
        return {
            "card": torch.cuda.get_device_name(self.device),
            "driver": _driver(),
            "cuda": str(torch.version.cuda),
            **versions,
            "limit_tflops": self.limit_flops / 1e12,
            "limit_measured_by": f"a product of {side} x {side}",
        }

    def _loop(self, documents: Documents, *, both: bool = False) -> list[ReferenceScores]:
        from tests.bench.pair_reference import reference_loop

        observer, performer = self.models
        return reference_loop(observer, performer, documents, both=both)

    def throughput(self) -> Table:
        """Documents per second: transformers' bodies, the fast ones, those in FP8, and the loop."""
        from scoring.pair.body import fast_body
        from tests.bench.pair_reference import document_flops

        plan = self.plan
        each = document_flops(plan.shape, plan.tokens)
        looped = self.documents[: plan.looped]
        self._loop(looped[:2])
        loop = plan.looped / self.seconds(lambda: self._loop(looped))
        several = self.mixed[: 2 * plan.looped]
        loop_mixed = len(several) / self.seconds(lambda: self._loop(several))
        result: Table = {
            "tflop_a_document": each / 1e12,
            **({"limit_documents_s": self.limit_flops / each} if self.on_card else {}),
            "loop": {"documents_s": loop, "mixed_documents_s": loop_mixed, **self._share(loop * each)},
        }

        def measured(way: Callable[[Any], Any]) -> Table:
            self.pair = self._pair(way)
            engine = self._engine(self.pair)
            engine.warm_up()
            engine.read_ids(self.mixed)
            rate = plan.documents / self.seconds(lambda: engine.read_ids(self.documents))
            before = engine.work
            mixed = len(self.mixed) / self.seconds(lambda: engine.read_ids(self.mixed))
            after = engine.work
            engine.close()
            padding, tokens = after.padding - before.padding, after.tokens - before.tokens
            return {
                "documents_s": rate,
                "tokens_s": rate * plan.tokens,
                **self._share(rate * each),
                "of_loop": rate / loop,
                "mixed_documents_s": mixed,
                "mixed_of_loop": mixed / loop_mixed,
                "padding_share": padding / (padding + tokens),
            }

        def in_fp8(body: Any) -> Any:
            from scoring.engine.fp8 import shrink_linears

            own = copy.deepcopy(body)  # the other ways need the original
            shrink_linears(own)
            return fast_body(own)

        result["transformers"] = attempt(lambda: measured(lambda body: body))
        result["fp8"] = attempt(lambda: measured(in_fp8))
        # on a CPU the body itself is changed, and the loop needs the original
        result["fast"] = attempt(lambda: measured(lambda b: fast_body(b if self.on_card else copy.deepcopy(b))))
        return result

    def _share(self, flops: float) -> Table:
        """The share of the GPU's limit that these operations per second reach; a CPU's limit is not measured."""
        return {"share_of_limit": flops / self.limit_flops} if self.on_card else {}

    def equality(self) -> Table:
        """Scores of the engine and of the loop in float64 on the same weights."""
        from scoring.pair.scores import PairReading
        from tests.bench.pair_reference import in_float64

        documents = self.mixed[: self.plan.exact]
        with in_float64(self.models[0]), in_float64(self.models[1]):
            expected = self._loop(documents, both=True)
        found = self._engine(self.pair).read_ids(documents)
        apart, detect_apart = [], []
        for one, other in zip(found, expected, strict=True):
            if not isinstance(one, PairReading) or other.fast_detectgpt is None:
                raise BadParameters(f"the engine gave no score where the loop did: {one}")
            apart.append(abs(one.binoculars - other.binoculars))
            detect_apart.append(abs(one.fast_detectgpt - other.fast_detectgpt))
        return {
            "documents": len(documents),
            "largest_difference_binoculars": max(apart),
            "largest_difference_fast_detectgpt": max(detect_apart),
            "tolerance_binoculars": self.plan.tolerance,
            "equal": max(apart) <= self.plan.tolerance,
        }

    def fp8_equality(self) -> Table:
        """Scores of a small pair in FP8 on this device and on a CPU, and their spread."""
        from tests.bench.bench_fp8 import WORDS, random_model, scores_of

        documents = [[self.dice.randrange(WORDS) for _ in range(self.plan.tokens)] for _ in range(8)]
        models = [random_model(1), random_model(2)]
        found, expected = (scores_of(models, "fp8", documents, device) for device in (self.plan.device, "cpu"))
        apart, spread = abs(found - expected).max(axis=0).tolist(), expected.std(axis=0).tolist()
        names = ("binoculars", "fast_detectgpt")
        return {
            name: {"largest_difference": far, "spread": of} for name, far, of in zip(names, apart, spread, strict=True)
        }

    def encoder(self) -> Table:
        """Texts of 128 to 512 tokens per second through an encoder of the shape of DeBERTa-v3-large."""
        from tests.bench.bench_encoder import TEXTS_AT_ONCE, engine_of, texts_of

        plan, on_card = self.plan, self.on_card
        engine, parameters = engine_of(24 if on_card else 1, plan.device, getattr(self.torch, plan.dtype))
        texts = texts_of(256 if on_card else 2)
        engine.read_ids(texts[:1])
        starts = range(0, len(texts), TEXTS_AT_ONCE)
        spent_s = self.seconds(lambda: [engine.read_ids(texts[at : at + TEXTS_AT_ONCE]) for at in starts])
        engine.close()
        rate = len(texts) / spent_s
        return {"parameters": parameters, "texts_s": rate, "articles_an_hour": 3600 * rate}

    def memory(self) -> Table:
        """Peak memory above the weights, and documents per second, by token budget."""
        rows: Table = {}
        if self.device.type != "cuda":
            return {"not measured": "needs a card"}
        for budget in self.plan.budgets:
            self._empty()
            weights = self.torch.cuda.memory_allocated(self.device)
            engine = self._engine(self.pair, budget)
            documents = list(islice(cycle(self.documents), max(32, 3 * budget // self.plan.tokens)))
            rate = len(documents) / self.seconds(partial(engine.read_ids, documents), rounds=2)
            peak = self.torch.cuda.max_memory_allocated(self.device) - weights
            rows[str(budget)] = {
                "peak_gib": peak / 2**30,
                "weights_gib": weights / 2**30,
                "documents_s": rate,
                "budget_at_the_end": engine.work.batch_tokens,
            }
            engine.close()
        self._empty()
        return rows

    def vocabulary(self) -> Table:
        """The pass over the vocabulary alone, on one batch: both kernels, and the products in it alone."""
        from scoring.pair.vocabulary_pass import Head, vocab_pass
        from tests.bench.pair_reference import head_products

        torch, plan = self.torch, self.plan
        count, dtype = plan.budget, self.models[0].dtype
        one, other = (torch.randn(count, plan.shape.hidden, device=self.device, dtype=dtype) for _ in range(2))
        head, other_head = (Head(model.get_output_embeddings().weight) for model in self.models)
        targets = torch.randint(0, plan.shape.words, (count,), device=self.device)
        sums: dict[Kernel, TokenSums] = {}
        result: Table = {"positions": count}

        def passed(kernel: Kernel) -> None:
            sums[kernel] = vocab_pass(one, other, head, other_head, targets, kernel=kernel)

        kernels: tuple[Kernel, ...] = ("torch", "triton") if self.device.type == "cuda" else ("torch",)
        for kernel in kernels:
            passed(kernel)
            result[f"{kernel}_ms"] = 1e3 * self.seconds(partial(passed, kernel))
        products = self.seconds(lambda: head_products(one, other, head, other_head))
        result["products_ms"] = 1e3 * products
        flops = 4 * count * plan.shape.hidden * plan.shape.words
        result |= {f"products_{name}": share for name, share in self._share(flops / products).items()}
        if "triton" in sums:
            differences = [
                float(((a - b).abs() / b.abs().clamp_min(1)).max())
                for a, b in zip(sums["triton"], sums["torch"], strict=True)
            ]
            result["kernels_differ_by"] = max(differences)
            result["kernels_equal"] = max(differences) <= 1e-5
        return result

    def profile(self) -> Table:
        """The time of a batch by part: bodies, head products, sums; and its slowest kernels."""
        torch, plan = self.torch, self.plan
        ids = torch.tensor(self.documents[: plan.budget // plan.tokens], device=self.device)
        pair = self.pair

        def bodies() -> None:
            with torch.inference_mode():
                for model in (pair.observer, pair.performer):
                    model.body(input_ids=ids, use_cache=False)

        bodies()
        both = self.vocabulary()
        passed = float(both["triton_ms" if "triton_ms" in both else "torch_ms"])
        body = 1e3 * self.seconds(bodies)
        return {
            "positions": ids.numel(),
            "bodies_ms": body,
            "head_products_ms": both["products_ms"],
            "sums_ms": passed - both["products_ms"],
            "bodies_share": body / (body + passed),
            **({"kernels_of_the_bodies": self._kernels(bodies)} if self.on_card else {}),
            "vocabulary": both,
        }

    def _kernels(self, work: Callable[[], None]) -> Table:
        torch = self.torch
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            work()
            self._settle()
        times = [(row.key[:90], float(row.self_device_time_total) / 1e3) for row in seen.key_averages()]
        total = sum(spent for _, spent in times) or 1.0
        most = sorted(times, key=lambda time: -time[1])[:14]
        return {name: f"{spent:.2f} ms, {spent / total:.1%}" for name, spent in most}


def attempt(work: Callable[[], Table]) -> Table:
    """The result of `work`, or its error, so that one failed table does not cost the others."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  # reported in the table, and by the exit status
        return {FAILED: f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}


def _version(module: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(module)
    except PackageNotFoundError:
        return "not installed"


def _driver() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return "unknown"
    asked = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
    return told.stdout.split("\n")[0].strip() or "unknown"
