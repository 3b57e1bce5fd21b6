"""The engine on a stand-in device that is full, fails, or gives no finite numbers."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from scoring.engine.loading import device_errors
from scoring.engine.suspects import Suspects
from scoring.errors import (
    CannotScore,
    DeviceGone,
    DeviceLost,
    MissingModel,
    NoDevice,
    OutOfDeviceMemory,
    PoisonText,
    UnsupportedModel,
)
from scoring.interface import TextScore
from scoring.pair.models import PairModels, load_models
from scoring.pair.scores import PairReading
from tests.support.lazily import Lazily
from tests.support.pairs import Pair, settings_of

if TYPE_CHECKING:
    from scoring.engine.engine import Ids
    from scoring.pair import device as devices
    from scoring.pair import engine as engines
    from scoring.pair.engine import PairEngine, Result
else:
    devices, engines = Lazily("scoring.pair.device"), Lazily("scoring.pair.engine")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

POISON = 13


class FakeDevice:
    """A device with room for `room` padded tokens; texts in `loses` make it fail at launch, or `late`, at landing."""

    def __init__(self, room: int = 10**9, loses: Callable[[list[list[int]]], bool] = lambda _: False) -> None:
        self.room, self.loses, self.late = room, loses, False
        self.launched: list[list[list[int]]] = []  # batches in order of arrival
        self.freed = self.flying = self.most_flying = 0

    def launch(self, texts: Sequence[Ids]) -> Any:
        """A batch whose scores are the texts' first ids."""
        batch = [list(ids) for ids in texts]
        if len(batch) * max(map(len, batch)) > self.room:
            raise OutOfDeviceMemory("fake")
        self.launched.append(batch)
        if not self.late and self.loses(batch):
            raise DeviceLost("CUDA error: fake")
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)

        def land() -> list[PairReading | TextScore]:
            self.flying -= 1
            if self.late and self.loses(batch):
                raise DeviceLost("CUDA error: fake")
            return [PairReading(ids[0], 0.0, 1.0, 1.0, len(ids)) for ids in batch]

        return SimpleNamespace(land=land)

    def free(self) -> None:
        self.freed += 1

    def memory_bytes(self) -> tuple[int, int, int]:
        return 1, 2, 3


@pytest.fixture(scope="module")
def models(pairs: dict[str, Pair]) -> PairModels:
    """The falcon pair."""
    return load_models(settings_of(pairs["falcon"]))


@pytest.fixture
def start(pairs: dict[str, Pair], models: PairModels) -> Callable[..., PairEngine]:
    """An engine on the given device."""

    def started(on: Any, **changes: Any) -> PairEngine:
        reload = changes.pop("reload", lambda: models)
        make = on if callable(on) else lambda _: on
        suspects = changes.pop("suspects", None)
        settings = settings_of(pairs["falcon"], **changes)
        return engines.PairEngine(models, settings, reload=reload, device=make, suspects=suspects)

    return started


def texts(*lengths: int) -> list[list[int]]:
    """A text of each length; text number i repeats the id i + 1."""
    return [[index + 1] * length for index, length in enumerate(lengths)]


def firsts(results: Sequence[Result]) -> list[float]:
    """The results of the fake device by text."""
    return [result.binoculars if isinstance(result, PairReading) else -1 for result in results]


def with_poison(batch: list[list[int]]) -> bool:
    """True if one of the texts is the one that loses the device."""
    return any(ids[0] == POISON for ids in batch)


def test_out_of_memory_halves_the_budget(start: Callable[..., PairEngine]) -> None:
    """A batch that does not fit is split in halves; every text gets its score, and later calls start small."""
    device = FakeDevice(room=130)
    engine = start(device, batch_tokens=400, max_tokens=64)
    assert firsts(engine.read_ids(texts(*[10] * 60))) == [float(n) for n in range(1, 61)]
    assert engine.work.out_of_memory == 2
    assert engine.work.batch_tokens == 100
    assert device.freed == 2
    engine.read_ids(texts(*[10] * 60))
    assert engine.work.out_of_memory == 2


def test_budget_stays_above_max_tokens_and_grows_again(start: Callable[..., PairEngine]) -> None:
    """After a shortage of memory, later calls begin with max_tokens.

    If these fit, the budget doubles up to the configured one.
    """
    device = FakeDevice(room=15)
    engine = start(device, batch_tokens=512, max_tokens=128)
    assert firsts(engine.read_ids(texts(*[10] * 60))) == [float(n) for n in range(1, 61)]
    assert engine.work.batch_tokens == 128
    device.room = 10**9
    for _ in range(20):
        engine.read_ids(texts(*[100] * 20))
    assert engine.work.batch_tokens == 512


def test_short_memory_does_not_bury_what_has_fitted_before(start: Callable[..., PairEngine]) -> None:
    """If a text no longer than an earlier one does not fit, it is not poison: the call may be retried."""
    device = FakeDevice()
    engine = start(device)
    engine.read_ids(texts(20, 5))
    device.room = 0
    with pytest.raises(OutOfDeviceMemory, match="20 tokens have fitted") as caught:
        engine.read_ids(texts(5, 19, 20))
    assert caught.value.retriable
    assert isinstance(engine.read_ids(texts(21))[0], PoisonText)
    device.room = 10**9
    assert firsts(engine.read_ids(texts(5, 19, 20))) == [1, 2, 3]


def test_text_that_does_not_fit_alone_is_poison_and_its_neighbours_are_scored(start: Callable[..., PairEngine]) -> None:
    """A single text that is too large is a PoisonText after one retry alone; the other texts are scored."""
    engine = start(FakeDevice(room=130), batch_tokens=400)
    read = engine.read_ids(texts(10, 200, 10, 20))
    assert isinstance(read[1], PoisonText)
    assert firsts(read) == [1, -1, 3, 4]
    assert engine.work.batch_tokens >= 20  # one large text does not shrink the batches of the others


def test_lost_device_is_retriable_and_the_next_call_recovers(start: Callable[..., PairEngine]) -> None:
    """A lost device is a retriable DeviceLost; the next call loads the models again and scores the same texts."""
    broken, good = FakeDevice(loses=lambda _: True), FakeDevice()
    devices = [broken, good]
    engine = start(lambda _: devices.pop(0))
    assert engine.loaded
    with pytest.raises(DeviceLost) as caught:
        engine.read_ids(texts(5, 6, 7))
    assert caught.value.retriable and not engine.loaded
    assert firsts(engine.read_ids(texts(5, 6, 7))) == [1, 2, 3]
    assert engine.work.lost == 1 and engine.loaded
    assert all(len(batch) == 1 for batch in good.launched)  # the suspects were read one by one
    engine.read_ids(texts(5, 6, 7))
    assert len(good.launched[-1]) == 3  # and are no longer suspects


def test_two_poison_texts_alone_in_a_call_are_both_buried(start: Callable[..., PairEngine]) -> None:
    """If the device works again after each loss, both poison texts are dead-lettered and the device stays."""
    engine = start(FakeDevice(loses=lambda batch: batch[0][0] >= 200))
    asked = [[200] * 5, [201] * 6]
    for _ in range(5):
        with pytest.raises(DeviceLost):
            engine.read_ids(asked)
    assert [type(result) for result in engine.read_ids(asked)] == [PoisonText, PoisonText]


def test_device_that_loses_every_suspect_is_gone(start: Callable[..., PairEngine]) -> None:
    """A device that passes its trial and then fails at every text dead-letters no text."""
    engine = start(FakeDevice(loses=lambda batch: len(batch[0]) == 9))
    asked = [[number] * 9 for number in range(1, 30)]
    with pytest.raises(DeviceGone):
        for _ in range(20):
            with pytest.raises(DeviceLost):
                engine.read_ids(asked)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("poison", [[POISON], [POISON, 17], [1], [20]])
def test_poison_is_buried_across_processes_that_one_loss_ends(
    start: Callable[..., PairEngine], tmp_path: Path, late: bool, poison: list[int]
) -> None:
    """After a CUDA fault the process cannot use its device or load models again.

    The next processes read the suspects alone, dead-letter the guilty ones, and score all others.
    """
    asked = [[number] * 5 for number in range(1, 21)]
    suspects = tmp_path / "own" / "suspects.json"
    for process in range(1, 10):
        dead: list[bool] = []

        def loses(batch: list[list[int]], dead: list[bool] = dead) -> bool:
            if any(ids[0] in poison for ids in batch):
                dead.append(True)
            return bool(dead)

        device = FakeDevice(loses=loses)
        device.late = late
        engine = start(device, suspects=suspects, batch_tokens=64)
        try:
            for _ in range(5):
                try:
                    read = engine.read_ids(asked)
                    break
                except DeviceLost:
                    continue
            break
        except DeviceGone:
            assert process <= 1 + 2 * len(poison)
    assert [n for n, score in enumerate(firsts(read), 1) if score != n] == poison
    assert all(isinstance(read[number - 1], PoisonText) for number in poison)
    assert len(Suspects(suspects)) == len(poison)  # the others are no longer suspects


def test_warm_up_blames_no_text(start: Callable[..., PairEngine], tmp_path: Path) -> None:
    """A GPU that fails during the warm-up leaves no suspect, because the warm-up reads no page's text."""
    for _ in range(3):
        with pytest.raises(DeviceLost):
            start(FakeDevice(loses=lambda _: True), suspects=tmp_path / "suspects.json").warm_up()
    start(FakeDevice(), suspects=tmp_path / "suspects.json").warm_up()


def test_lost_models_are_let_go_before_new_ones_are_loaded(start: Callable[..., PairEngine]) -> None:
    """The lost models are freed before new ones are loaded, because two copies do not fit on a GPU.

    This needs no garbage collection, although the error is kept.
    """
    made: list[weakref.ref[FakeDevice]] = []
    alive: list[bool] = []

    def make(_: PairModels) -> FakeDevice:
        device = FakeDevice(loses=with_poison)
        device.late = len(made) > 1
        made.append(weakref.ref(device))
        return device

    def reload() -> Any:
        alive.append(any(device() is not None for device in made))

    gc.disable()
    try:
        engine = start(make, reload=reload)
        kept = []
        for _ in range(3):
            try:
                engine.read_ids([[POISON] * 5, [2] * 5])
            except DeviceLost as error:
                kept.append(error)
    finally:
        gc.enable()
    assert len(kept) == 3
    assert alive == [False, False]


def test_who_waited_while_the_device_was_lost_fails_with_it(start: Callable[..., PairEngine]) -> None:
    """Of two concurrent calls, one loses the device and the other does not load it again.

    Both are rolled back, and one loss is counted.
    """
    reached, go = threading.Event(), threading.Event()
    reloads: list[int] = []

    def loses(batch: list[list[int]]) -> bool:
        reached.set()
        assert go.wait(10)
        return True

    def reload() -> PairModels:
        reloads.append(1)
        raise NoDevice("gone")

    engine = start(FakeDevice(loses=loses), reload=reload)
    errors: list[BaseException] = []

    def read(first: int) -> None:
        try:
            engine.read_ids([[first] * 5])
        except DeviceLost as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=(first,)) for first in (1, 2)]
    threads[0].start()
    assert reached.wait(10)
    threads[1].start()
    threads[1].join(0.2)  # it waits for its turn
    go.set()
    for thread in threads:
        thread.join()
    assert len(errors) == 2
    assert engine.work.lost == 1
    assert not reloads


@pytest.mark.parametrize("refused", [UnsupportedModel, MissingModel, OSError])
def test_models_that_are_refused_after_a_loss_end_the_process(
    start: Callable[..., PairEngine], refused: type[Exception]
) -> None:
    """After a loss, changed or missing model files are DeviceGone with the cause: no retry helps."""

    def reload() -> PairModels:
        raise refused("model.safetensors is gone")

    engine = start(FakeDevice(loses=lambda _: True), reload=reload)
    with pytest.raises(DeviceLost):
        engine.read_ids(texts(5))
    with pytest.raises(DeviceGone, match="is gone") as caught:
        engine.read_ids(texts(5))
    assert isinstance(caught.value.__cause__, refused)


@pytest.mark.parametrize("reloads", [True, False])
def test_third_loss_in_a_row_ends_the_process(start: Callable[..., PairEngine], reloads: bool) -> None:
    """Three losses of a device without a scored text in between are a fatal DeviceGone."""

    def unseen() -> PairModels:
        raise NoDevice("torch sees 0 CUDA cards")

    engine = start(FakeDevice(loses=lambda _: True), **({} if reloads else {"reload": unseen}))
    for _ in range(2):
        with pytest.raises(DeviceLost):
            engine.read_ids(texts(5, 6, 7))
    with pytest.raises(DeviceGone) as caught:
        engine.read_ids(texts(5, 6, 7))
    assert not caught.value.retriable
    assert caught.value.fatal


def test_a_score_in_between_forgives_losses(start: Callable[..., PairEngine]) -> None:
    """Losses with a scored text in between do not add up to DeviceGone."""
    device = FakeDevice(loses=with_poison)
    engine = start(device)
    for number in range(5):
        device.loses = lambda _: True
        with pytest.raises(DeviceLost):
            engine.read_ids([[100 + number] * 5])
        device.loses = lambda _: False
        assert firsts(engine.read_ids([[100 + number] * 5])) == [100 + number]


def test_closing_ends_a_long_reading_at_the_next_batch(start: Callable[..., PairEngine]) -> None:
    """A stopping process waits only for the batch on the device, not for hundreds of texts."""

    class Closing(FakeDevice):
        def launch(self, texts: Sequence[Ids]) -> Any:
            engine.close()
            return super().launch(texts)

    device = Closing()
    engine = start(device, batch_tokens=100)
    with pytest.raises(CannotScore):
        engine.read_ids(texts(*[10] * 60))
    assert len(device.launched) == 1


def test_nothing_and_one_token_are_abstained_from(start: Callable[..., PairEngine]) -> None:
    """Texts of fewer than two tokens are abstentions (one_token), without the device."""
    device = FakeDevice()
    assert start(device).read_ids([[], [1]]) == [
        TextScore(abstain="one_token", tokens=0),
        TextScore(abstain="one_token", tokens=1),
    ]
    assert not device.launched


def test_warm_up_runs_the_largest_batch(start: Callable[..., PairEngine]) -> None:
    """A budget that does not fit is reduced before the first text."""
    device = FakeDevice(room=300)
    engine = start(device, batch_tokens=512, max_tokens=128, device="cuda")
    engine.warm_up()
    assert engine.work.batch_tokens == 256
    assert [len(batch) * len(batch[0]) for batch in device.launched] == [8, 256, 256]


def test_warm_up_refuses_what_cannot_work(start: Callable[..., PairEngine]) -> None:
    """A text of max_tokens that does not fit, or models without finite numbers, end the start with a remedy."""
    with pytest.raises(NoDevice, match=r"128 tokens does not fit .* score\.pair\.max_tokens"):
        start(FakeDevice(room=100), max_tokens=128, device="cuda").warm_up()

    class Broken(FakeDevice):
        def launch(self, texts: Sequence[Ids]) -> Any:
            landing = super().launch(texts)
            landing.land = lambda: [TextScore(abstain="not_a_number", tokens=len(ids)) for ids in texts]
            return landing

    with pytest.raises(UnsupportedModel, match="no finite numbers as float32"):
        start(Broken()).warm_up()


def test_without_a_compiler_torch_passes_over_the_vocabulary() -> None:
    """If Triton cannot compile for the GPU, torch does its work and the reason is logged."""
    import torch

    def fails(_: torch.device) -> None:
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC")

    card, cpu = torch.device("cuda"), torch.device("cpu")
    with capture_logs() as events:
        assert devices.choose_kernel(card, fails) == devices.choose_kernel(cpu) == "torch"
    (event,) = events
    assert "Failed to find C compiler. Please" in event["why"] and "C compiler" in event["remedy"]
    assert devices.choose_kernel(card, lambda _: None) == "triton"


def test_threads_take_turns(start: Callable[..., PairEngine]) -> None:
    """Two threads that read concurrently each get their own scores."""
    engine = start(FakeDevice(), batch_tokens=64)
    found: dict[int, list[float]] = {}

    def read(first: int) -> None:
        found[first] = firsts(engine.read_ids([[first + n] * 9 for n in range(50)]))

    threads = [threading.Thread(target=read, args=(first,)) for first in (1, 101, 201)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {first: [float(first + n) for n in range(50)] for first in (1, 101, 201)}


def test_model_that_gives_no_numbers(pairs: dict[str, Pair]) -> None:
    """NaN for one text is an abstention (not_a_number); the other texts of the batch are scored."""
    import torch

    settings = settings_of(pairs["llama"])  # its head differs from its embedding
    models = load_models(settings)
    with torch.no_grad():
        models.performer.body.embed_tokens.weight[77] = float("nan")  # type: ignore[attr-defined]
    engine = engines.PairEngine(models, settings, device=devices.PairDevice)
    read = engine.read_ids([[5, 6, 7, 8], [5, 77, 6, 7], [9, 10, 11, 12]])
    assert read[1] == TextScore(abstain="not_a_number", tokens=4)
    assert isinstance(read[0], PairReading)
    assert isinstance(read[2], PairReading)


@pytest.mark.parametrize(
    ("kind", "said", "expected"),
    [
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2 GiB", OutOfDeviceMemory),
        ("RuntimeError", "[enforce fail] DefaultCPUAllocator: can't allocate memory", OutOfDeviceMemory),
        ("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`", OutOfDeviceMemory),
        ("on a card", "CUDA error: device-side assert triggered", DeviceLost),
        ("RuntimeError", "The size of tensor a (3) must match", RuntimeError),
        ("MemoryError", "", OutOfDeviceMemory),
        ("on a card", "Triton Error [CUDA]: an illegal memory access was encountered", DeviceLost),
        ("on a card", "CUDA driver error: unknown error", DeviceLost),
        ("on a card", "uncorrectable ECC error encountered", DeviceLost),
        ("on a card", "No CUDA GPUs are available", DeviceLost),
    ],
)
def test_errors_of_full_and_failed_devices_are_told_apart(kind: str, said: str, expected: type[Exception]) -> None:
    """Full and failed devices have their own error types; on a GPU the error's type decides, not its text."""
    import torch

    kinds = {"OutOfMemoryError": torch.OutOfMemoryError, "MemoryError": MemoryError}
    with pytest.raises(expected) as caught, device_errors(on_card=kind == "on a card"):
        raise kinds.get(kind, RuntimeError)(said)
    assert type(caught.value) is expected
