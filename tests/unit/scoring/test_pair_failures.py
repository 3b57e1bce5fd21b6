"""What the engine does when the device is full, fails, or answers with what is no number. The device is a stand-in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from scoring.errors import BadParameters, CannotScore, DeviceGone, DeviceLost, NoDevice, OutOfDeviceMemory, PoisonText
from scoring.pair_device import DeviceMemory, PairDevice
from scoring.pair_engine import Ids, PairEngine, Result
from scoring.pair_models import PairModels, device_errors, load_models
from scoring.pair_scores import PairReading
from scoring.pair_tokens import Abstained
from tests.pairs import Pair, settings_of

POISON = 13


class FakeLanding:
    """A batch of the fake device."""

    def __init__(self, device: FakeDevice, texts: list[list[int]]) -> None:
        """Scores are the texts' first ids."""
        self._device, self._texts = device, texts

    def land(self) -> list[PairReading | Abstained]:
        """Loses the device where a text says so and `late` is set."""
        self._device.flying -= 1
        if self._device.late and self._device.loses(self._texts):
            raise DeviceLost("CUDA error: fake")
        return [PairReading(ids[0], 0.0, 1.0, 1.0, len(ids)) for ids in self._texts]


class FakeDevice:
    """Has room for `room` padded tokens, and is lost by texts that `loses` names."""

    def __init__(self, room: int = 10**9, loses: Callable[[list[list[int]]], bool] = lambda _: False) -> None:
        """`launched` holds the batches as they came."""
        self.room, self.loses, self.late = room, loses, False
        self.launched: list[list[list[int]]] = []
        self.freed = self.flying = self.most_flying = 0

    def launch(self, texts: Sequence[Ids]) -> FakeLanding:
        """Raise, or fly."""
        batch = [list(ids) for ids in texts]
        if len(batch) * max(map(len, batch)) > self.room:
            raise OutOfDeviceMemory("fake")
        self.launched.append(batch)
        if not self.late and self.loses(batch):
            raise DeviceLost("CUDA error: fake")
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)
        return FakeLanding(self, batch)

    def free(self) -> None:
        """Count."""
        self.freed += 1

    def memory(self) -> DeviceMemory:
        """Numbers to be seen in the statistics."""
        return DeviceMemory(1, 2, 3)


@pytest.fixture(scope="module")
def models(pairs: dict[str, Pair]) -> PairModels:
    """The falcon pair."""
    return load_models(settings_of(pairs["falcon"]))


@pytest.fixture
def start(pairs: dict[str, Pair], models: PairModels) -> Callable[..., PairEngine]:
    """An engine on a device that the test chooses."""

    def started(on: Any, **changes: Any) -> PairEngine:
        reload = changes.pop("reload", lambda: models)
        make = on if callable(on) else lambda _: on
        return PairEngine(models, settings_of(pairs["falcon"], **changes), reload=reload, device=make)

    return started


def texts(*lengths: int) -> list[list[int]]:
    """A text of each length; text number i is made of the id i + 1."""
    return [[index + 1] * length for index, length in enumerate(lengths)]


def firsts(results: Sequence[Result]) -> list[float]:
    """What the fake device gave each text."""
    return [result.binoculars if isinstance(result, PairReading) else -1 for result in results]


def with_poison(batch: list[list[int]]) -> bool:
    """True where one of the texts is the one that loses the device."""
    return any(ids[0] == POISON for ids in batch)


def test_out_of_memory_halves_the_budget_for_good(start: Callable[..., PairEngine]) -> None:
    """A batch that does not fit goes again in halves; every text gets its score, and later calls start small."""
    device = FakeDevice(room=130)
    engine = start(device, batch_tokens=400)
    assert firsts(engine.read_ids(texts(*[10] * 60))) == [float(n) for n in range(1, 61)]
    assert engine.stats.out_of_memory == 2
    assert engine.stats.batch_tokens == 100
    assert device.freed == 2
    engine.read_ids(texts(*[10] * 60))
    assert engine.stats.out_of_memory == 2


def test_text_that_does_not_fit_alone_is_poison_and_its_neighbours_are_scored(
    start: Callable[..., PairEngine],
) -> None:
    """A single text too large for the device is a PoisonText in its place, after one more try by itself."""
    engine = start(FakeDevice(room=130), batch_tokens=400)
    read = engine.read_ids(texts(10, 200, 10, 20))
    assert isinstance(read[1], PoisonText)
    assert firsts(read) == [1, -1, 3, 4]
    assert engine.stats.batch_tokens >= 20  # one large text does not make the batches of the others tiny


def test_lost_device_is_retriable_and_the_next_call_recovers(start: Callable[..., PairEngine]) -> None:
    """A loss is DeviceLost with retriable set; the next call loads the models again and scores the same texts."""
    broken, good = FakeDevice(loses=lambda _: True), FakeDevice()
    devices = [broken, good]
    engine = start(lambda _: devices.pop(0))
    with pytest.raises(DeviceLost) as caught:
        engine.read_ids(texts(5, 6, 7))
    assert caught.value.retriable
    assert firsts(engine.read_ids(texts(5, 6, 7))) == [1, 2, 3]
    assert engine.stats.losses == 1
    assert all(len(batch) == 1 for batch in good.launched)  # the suspects were read one by one
    engine.read_ids(texts(5, 6, 7))
    assert len(good.launched[-1]) == 3  # and are no suspects any more


@pytest.mark.parametrize("late", [False, True])
def test_text_that_loses_the_device_each_time_is_poison(start: Callable[..., PairEngine], late: bool) -> None:
    """Tried again and again as the stage does, the text that loses the device ends as PoisonText; all others score."""
    device = FakeDevice(loses=with_poison)
    device.late = late
    engine = start(device)
    asked = [[number] * 5 for number in range(1, 21)]
    for attempt in range(1, 6):
        try:
            read = engine.read_ids(asked)
            break
        except DeviceLost:
            assert attempt <= 3
    assert isinstance(read[POISON - 1], PoisonText)
    assert [n for n, score in enumerate(firsts(read), 1) if score != n] == [POISON]
    assert isinstance(engine.read_ids([[POISON] * 5])[0], PoisonText)  # remembered: the device is not lost again


def test_third_loss_in_a_row_ends_the_process(start: Callable[..., PairEngine]) -> None:
    """A device that fails three times with no text scored in between is DeviceGone: not retriable, and fatal."""
    engine = start(FakeDevice(loses=lambda _: True))
    for _ in range(2):
        with pytest.raises(DeviceLost):
            engine.read_ids(texts(5, 6, 7))
    with pytest.raises(DeviceGone) as caught:
        engine.read_ids(texts(5, 6, 7))
    assert not caught.value.retriable
    assert caught.value.fatal


def test_models_that_cannot_be_loaded_again_are_losses(start: Callable[..., PairEngine]) -> None:
    """A card that is not seen any more after a loss counts as lost again, up to DeviceGone; no text is blamed."""

    def reload() -> PairModels:
        raise NoDevice("torch sees 0 CUDA cards")

    engine = start(FakeDevice(loses=lambda _: True), reload=reload)
    for expected in (DeviceLost, DeviceLost, DeviceGone):
        with pytest.raises(expected):
            engine.read_ids(texts(5))


def test_a_score_in_between_forgives_losses(start: Callable[..., PairEngine]) -> None:
    """Losses far apart never add up to DeviceGone."""
    device = FakeDevice(loses=with_poison)
    engine = start(device)
    for number in range(5):
        device.loses = lambda _: True
        with pytest.raises(DeviceLost):
            engine.read_ids([[100 + number] * 5])
        device.loses = lambda _: False
        assert firsts(engine.read_ids([[100 + number] * 5])) == [100 + number]


def test_closing_ends_a_long_reading_at_the_next_batch(start: Callable[..., PairEngine]) -> None:
    """A process that is told to stop does not wait for hundreds of texts: what is on the device ends."""

    class Closing(FakeDevice):
        def launch(self, texts: Sequence[Ids]) -> FakeLanding:
            engine.close()
            return super().launch(texts)

    device = Closing()
    engine = start(device, batch_tokens=100)
    with pytest.raises(CannotScore):
        engine.read_ids(texts(*[10] * 60))
    assert len(device.launched) == 1


def test_it_is_not_loaded_from_a_loss_to_the_reload(start: Callable[..., PairEngine]) -> None:
    """What SCORE tells on /readyz."""
    engine = start(FakeDevice(loses=with_poison))
    assert engine.loaded
    with pytest.raises(DeviceLost):
        engine.read_ids([[POISON] * 4])
    assert not engine.loaded
    engine.read_ids(texts(4))
    assert engine.loaded


def test_two_batches_are_in_flight(start: Callable[..., PairEngine]) -> None:
    """The second batch is queued before the first is waited for, and never a third."""
    device = FakeDevice()
    start(device, batch_tokens=64).read_ids(texts(*[32] * 11))
    assert device.most_flying == 2
    assert len(device.launched) == 6


def test_statistics_count_tokens_and_padding(start: Callable[..., PairEngine]) -> None:
    """Tokens are those of the texts, padding what was computed beside them, memory what the device says."""
    engine = start(FakeDevice())
    engine.read_ids(texts(10, 7, 1, 12))
    stats = engine.stats
    assert (stats.texts, stats.tokens, stats.padding, stats.batches) == (3, 29, 7, 1)
    assert stats.memory == DeviceMemory(1, 2, 3)
    assert stats.busy_s > 0


def test_ids_that_the_models_do_not_have_are_refused(start: Callable[..., PairEngine]) -> None:
    """An id beyond the heads' width never reaches a device, where it would be an assertion that loses the card."""
    engine = start(FakeDevice())
    with pytest.raises(BadParameters, match="0 to 303"):
        engine.read_ids([[1, 304]])
    with pytest.raises(BadParameters):
        engine.read_ids([[1, -1]])


def test_nothing_and_one_token_are_abstained_from(start: Callable[..., PairEngine]) -> None:
    """Ids of fewer than two tokens are one_token, without the device."""
    device = FakeDevice()
    assert start(device).read_ids([[], [1]]) == [Abstained("one_token", 0), Abstained("one_token", 1)]
    assert not device.launched


def test_warm_up_runs_the_largest_batch(start: Callable[..., PairEngine]) -> None:
    """A budget that does not fit is known before the first text."""
    device = FakeDevice(room=300)
    engine = start(device, batch_tokens=512, max_tokens=128, device="cuda")
    engine.warm_up()
    assert engine.stats.batch_tokens == 256
    assert [len(batch) * len(batch[0]) for batch in device.launched] == [2, 256, 256]


def test_threads_take_turns(start: Callable[..., PairEngine]) -> None:
    """Two threads that read at once get their own scores."""
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
    """NaN for one text is Abstained(not_a_number) for that text; its batch neighbours are scored."""
    import torch

    settings = settings_of(pairs["llama"])  # its head is not its embedding
    models = load_models(settings)
    with torch.no_grad():
        models.performer.body.embed_tokens.weight[77] = float("nan")  # type: ignore[attr-defined]
    engine = PairEngine(models, settings, device=PairDevice)
    read = engine.read_ids([[5, 6, 7, 8], [5, 77, 6, 7], [9, 10, 11, 12]])
    assert read[1] == Abstained("not_a_number", 4)
    assert isinstance(read[0], PairReading)
    assert isinstance(read[2], PairReading)


def test_what_torch_raises_is_told_apart() -> None:
    """torch's errors of a full and of a failed device become their own types; any other stays what it is."""
    import torch

    for raised, expected in (
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), OutOfDeviceMemory),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), OutOfDeviceMemory),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"), OutOfDeviceMemory),
        (RuntimeError("CUDA error: device-side assert triggered"), DeviceLost),
        (RuntimeError("CUDA error: unspecified launch failure"), DeviceLost),
        (RuntimeError("The size of tensor a (3) must match"), RuntimeError),
    ):
        with pytest.raises(expected) as caught, device_errors():
            raise raised
        assert type(caught.value) is expected
