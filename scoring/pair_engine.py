"""The pair engine: texts in, the scores of both detectors out, whatever the device does meanwhile.

Texts are tokenised a slice ahead on a thread, put into batches by their length, and two batches are in flight: while
one is on the device the next is queued, and results are read one batch late. Several threads may call; they take turns
at the device and tokenise beside it.

What goes wrong on the way:

    out of memory   the token budget is halved, for good, and the texts go on in smaller batches. A text that does not
                    fit alone is PoisonText; its neighbours are scored.
    device lost     DeviceLost, worth a retry: the next call loads the models again and reads the texts that were in
                    flight one by one, last. A text that loses the device twice when it is read alone is PoisonText.
                    The third loss without a text scored in between is DeviceGone: the process is to end.
    not a number    Abstained("not_a_number") for that text alone.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, NoReturn, Protocol

import msgspec
import numpy as np

from scoring.errors import BadParameters, CannotScore, DeviceGone, DeviceLost, NoDevice, OutOfDeviceMemory, PoisonText
from scoring.pair_device import DeviceMemory, PairDevice
from scoring.pair_models import PairModels, load_models
from scoring.pair_scores import PairReading
from scoring.pair_settings import PairSettings
from scoring.pair_tokens import Abstained, TextRules, batches, plain_tokenizer, tokenise

Result = PairReading | Abstained | PoisonText
Ids = Sequence[int]
_IN_FLIGHT = 2
_LOSSES_ALONE, _LOSSES_IN_A_ROW = 2, 3
_SLICE_BATCHES = 8  # tokenised at a time: enough texts to find some of one length, few enough to start soon
_KNOWN_POISON = 1000


class Landing(Protocol):
    """A batch under way."""

    def land(self) -> list[PairReading | Abstained]:
        """Wait for it. Raises DeviceLost."""


class Device(Protocol):
    """What the engine needs of a device; `scoring.pair_device.PairDevice` is one."""

    def launch(self, texts: Sequence[Ids]) -> Landing:
        """Queue a batch. Raises DeviceLost or OutOfDeviceMemory."""

    def free(self) -> None:
        """Give cached memory back."""

    def memory(self) -> DeviceMemory:
        """What is held now."""


class EngineStats(msgspec.Struct, frozen=True):
    """Counts since the start; memory as it is now."""

    texts: int = 0  # that went through the device
    tokens: int = 0  # theirs
    padding: int = 0  # positions computed beside them
    batches: int = 0
    busy_s: float = 0.0  # with a batch under way, seconds
    out_of_memory: int = 0
    losses: int = 0  # of the device
    batch_tokens: int = 0  # the budget as it is now
    memory: DeviceMemory = DeviceMemory()


class PairEngine:
    """Reads texts with a pair of models; see the module for what it does when that fails."""

    def __init__(
        self,
        models: PairModels,
        settings: PairSettings,
        *,
        reload: Callable[[], PairModels] | None = None,
        device: Callable[[PairModels], Device] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Read with `models`; `reload` brings them back after a loss, `device` and `clock` are for tests."""
        self._settings = settings
        self._reload = reload or (lambda: load_models(settings))
        self._on = device or (lambda models: PairDevice(models, kernel=settings.kernel))
        self._clock = clock
        self._rules = TextRules(settings.max_tokens, settings.min_tokens, settings.english_only)
        self._tokenizer = None if models.tokenizer is None else plain_tokenizer(models.tokenizer, settings.max_tokens)
        self._words = models.words
        self._device: Device | None = self._on(models)
        self._turn = threading.Lock()  # one thread at the device
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="pair-tokens")
        self._budget = settings.token_budget
        self._losses = 0  # in a row
        self._suspects: dict[bytes, int] = {}  # text -> losses of the device when it was read alone
        self._poison: dict[bytes, None] = {}
        self._texts = self._tokens = self._padding = self._batches = 0
        self._out_of_memory = self._all_losses = 0
        self._busy_s = self._landed_at = 0.0
        self._closed = False

    def read(self, texts: Sequence[str]) -> list[Result]:
        """One result per text, in order; a PoisonText stands for a text that is to be buried.

        Raises DeviceLost (worth a retry) or DeviceGone (the process is to end).
        """
        results: list[Result] = []
        for found in self._tokenised(texts):
            kept = [ids for ids in found if not isinstance(ids, Abstained)]
            read = iter(self.read_ids(kept))
            results += [ids if isinstance(ids, Abstained) else next(read) for ids in found]
        return results

    def read_ids(self, texts: Sequence[Ids]) -> list[Result]:
        """As `read`, from token ids; what is beyond max_tokens is cut off, the other rules of texts do not apply.

        Raises BadParameters for an id that the models do not have.
        """
        cut = [ids[: self._settings.max_tokens] for ids in texts]
        for ids in cut:
            if len(ids) and not 0 <= min(ids) <= max(ids) < self._words:
                raise BadParameters(f"token ids must be 0 to {self._words - 1}")
        results: list[Result] = [Abstained("one_token", len(ids)) for ids in cut]
        with self._turn:
            together, alone = self._sorted_out(cut, results)
            self._run(cut, together, results)
            for index in alone:
                self._run(cut, [index], results)
        return results

    def warm_up(self) -> None:
        """Run a small batch, and on a card the largest: kernels are compiled, the memory is known to be enough."""
        self.read_ids([[0] * 2])
        if self._settings.device != "cpu":
            longest = min(self._settings.max_tokens, self._budget)
            self.read_ids([[0] * longest] * (self._budget // longest))

    @property
    def loaded(self) -> bool:
        """False from the loss of the device until the models are loaded again."""
        return self._device is not None

    @property
    def stats(self) -> EngineStats:
        """Counts as they are now, from any thread."""
        device = self._device
        return EngineStats(
            self._texts,
            self._tokens,
            self._padding,
            self._batches,
            self._busy_s,
            self._out_of_memory,
            self._all_losses,
            self._budget,
            DeviceMemory() if device is None else device.memory(),
        )

    def close(self) -> None:
        """Stop the tokenising thread; whoever reads is let go with CannotScore once a batch has landed."""
        self._closed = True
        self._ahead.shutdown(wait=False, cancel_futures=True)

    def _tokenised(self, texts: Sequence[str]) -> Iterator[list[list[int] | Abstained]]:
        """Slices of `texts` as tokens, each made while the one before it is read."""
        tokenizer, rules = self._tokenizer, self._rules
        if tokenizer is None:
            raise BadParameters("this pair has no tokenizer: it reads token ids only")
        size = max(64, _SLICE_BATCHES * self._settings.token_budget // self._settings.max_tokens)
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        coming = deque(self._ahead.submit(tokenise, part, tokenizer, rules) for part in parts[:1])
        for part in [*parts[1:], None]:
            if not coming:
                return
            ready = coming.popleft().result()
            if part is not None:
                coming.append(self._ahead.submit(tokenise, part, tokenizer, rules))
            yield ready

    def _sorted_out(self, texts: Sequence[Ids], results: list[Result]) -> tuple[list[int], list[int]]:
        """Indices of the texts that are read together, and of those that are read alone, the least suspected first."""
        together, alone = [], []
        for index, ids in enumerate(texts):
            if len(ids) < 2:
                continue
            key = _key(ids) if self._suspects or self._poison else b""
            if key in self._poison:
                results[index] = PoisonText("this text has lost the device each time it was read alone")
            elif key in self._suspects:
                alone.append((self._suspects[key], index))
            else:
                together.append(index)
        return together, [index for _, index in sorted(alone)]

    def _run(self, texts: Sequence[Ids], indices: Sequence[int], results: list[Result]) -> None:
        """Read the texts at `indices` into `results`, two batches in flight."""
        if not indices:
            return
        waiting = self._planned(texts, indices)
        flying: deque[_Flying] = deque()
        batch: list[int] = []  # about to be launched
        try:
            device = self._working_device()
            while waiting or flying:
                if self._closed:
                    raise CannotScore("the engine was closed while it read")
                if len(flying) == _IN_FLIGHT or not waiting:
                    self._land(texts, flying, results)
                    continue
                batch = waiting.popleft()
                try:
                    flying.append(self._launched(device, texts, batch))
                except OutOfDeviceMemory as error:
                    while flying:
                        self._land(texts, flying, results)
                    self._make_room(device, texts, batch, error)
                    if len(batch) > 1:
                        waiting = self._planned(texts, [*batch, *(index for one in waiting for index in one)])
                    else:
                        results[batch[0]] = self._alone_again(device, texts, batch[0])
                batch = []
        except DeviceLost as error:
            self._lose([texts[index] for one in [batch, *(flight.batch for flight in flying)] for index in one], error)

    def _planned(self, texts: Sequence[Ids], indices: Sequence[int]) -> deque[list[int]]:
        lengths = [len(texts[index]) for index in indices]
        return deque([indices[position] for position in batch] for batch in batches(lengths, self._budget))

    def _launched(self, device: Device, texts: Sequence[Ids], batch: list[int]) -> _Flying:
        started = self._clock()
        return _Flying(batch, device.launch([texts[index] for index in batch]), started)

    def _land(self, texts: Sequence[Ids], flying: deque[_Flying], results: list[Result]) -> None:
        """Wait for the batch that was launched first. It stays among `flying` if the device is lost meanwhile."""
        flight = flying[0]
        for index, result in zip(flight.batch, flight.landing.land(), strict=True):
            results[index] = result
            if self._suspects:
                self._suspects.pop(_key(texts[index]), None)
        flying.popleft()
        self._losses = 0
        lengths = [len(texts[index]) for index in flight.batch]
        self._texts += len(lengths)
        self._tokens += sum(lengths)
        self._padding += len(lengths) * max(lengths) - sum(lengths)
        self._batches += 1
        now = self._clock()
        self._busy_s += now - max(flight.launched_at, self._landed_at)
        self._landed_at = now

    def _make_room(self, device: Device, texts: Sequence[Ids], batch: Sequence[int], error: OutOfDeviceMemory) -> None:
        """After `batch` did not fit: smaller batches from now on, unless it was a single text."""
        _forget_frames(error)
        device.free()
        self._out_of_memory += 1
        if len(batch) > 1:
            self._budget = max(1, len(batch) * max(len(texts[index]) for index in batch) // 2)

    def _alone_again(self, device: Device, texts: Sequence[Ids], index: int) -> Result:
        """Read one text with nothing else on the device, for the second and last time."""
        flying: deque[_Flying] = deque()
        results: list[Result] = [Abstained("one_token")] * len(texts)
        try:
            flying.append(self._launched(device, texts, [index]))
        except OutOfDeviceMemory as error:
            self._make_room(device, texts, [index], error)
            return PoisonText(f"a text of {len(texts[index])} tokens does not fit into the device's memory: {error}")
        self._land(texts, flying, results)
        return results[index]

    def _working_device(self) -> Device:
        if self._device is None:
            try:
                self._device = self._on(self._reload())
            except NoDevice as error:
                raise DeviceLost(f"the models could not be loaded again: {error}") from error
        return self._device

    def _lose(self, blamed: Sequence[Ids], error: DeviceLost) -> NoReturn:
        """Remember the loss and which texts were in flight. Raises DeviceLost, or DeviceGone for one too many."""
        self._device = None
        _forget_frames(error)
        self._losses += 1
        self._all_losses += 1
        for key in map(_key, blamed):
            alone = self._suspects.get(key, 0) + (len(blamed) == 1)
            self._suspects[key] = alone
            if alone >= _LOSSES_ALONE:
                del self._suspects[key]
                self._poison[key] = None
        while len(self._poison) > _KNOWN_POISON:
            del self._poison[next(iter(self._poison))]
        if self._losses >= _LOSSES_IN_A_ROW:
            raise DeviceGone(f"lost {self._losses} times with no text scored in between: {error}") from error
        raise error


class _Flying(NamedTuple):
    batch: list[int]
    landing: Landing
    launched_at: float


def _forget_frames(error: Exception) -> None:
    """Drop what led to `error`: its frames hold the batch's tensors, or the models that are to be loaded anew."""
    error.__traceback__ = error.__cause__ = error.__context__ = None


def _key(ids: Ids) -> bytes:
    return hashlib.blake2b(np.asarray(ids, np.int64).tobytes(), digest_size=16).digest()
