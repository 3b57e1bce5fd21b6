"""The pair engine: texts in, the scores of both detectors out, whatever the device does meanwhile.

Texts are tokenised a slice ahead on a thread, put into batches by their length, and two batches are in flight: while
one is on the device the next is queued, and results are read one batch late. Several threads may call; they take turns
at the device and tokenise beside it.

What goes wrong on the way:

    out of memory   the texts go on in smaller batches; the token budget is halved, not below max_tokens, and doubled
                    again when many batches have fitted. A text that does not fit alone is PoisonText, and its
                    neighbours are scored; but if a text as long has fitted before, then the memory is short for now,
                    and that is OutOfDeviceMemory, worth a retry.
    device lost     DeviceLost, worth a retry: the next call loads the models again, tries them on a few tokens, and
                    reads the texts that were in flight one by one, last. A text that loses the device twice when it is
                    read alone is PoisonText. The third loss without a text scored in between is DeviceGone: the process
                    is to end. Losses to a suspect that is read alone are not counted to that unless there are many, and
                    what is known of suspects outlives the process (scoring/pair/suspects.py).
    cannot reload   the files of the models have changed, or are gone: DeviceGone at once.
    not a number    Abstained("not_a_number") for that text alone.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

import msgspec

from scoring.errors import (
    BadParameters,
    CannotScore,
    DeviceGone,
    DeviceLost,
    NoDevice,
    OutOfDeviceMemory,
    PoisonText,
    UnsupportedModel,
)
from scoring.pair.device import DeviceMemory, PairDevice
from scoring.pair.models import PairModels, load_models
from scoring.pair.scores import PairReading
from scoring.pair.settings import PairSettings
from scoring.pair.suspects import LOSSES_ALONE, Suspects
from scoring.pair.tokens import Abstained, TextRules, batches, plain_tokenizer, tokenise

Result = PairReading | Abstained | PoisonText
Ids = Sequence[int]
_IN_FLIGHT = 2
_LOSSES_IN_A_ROW, _LOSSES_TO_SUSPECTS = 3, 8
_GROWS_AFTER = 100  # batches that fitted
_SLICE_BATCHES = 8  # tokenised at a time: enough texts to find some of one length, few enough to start soon


class Landing(Protocol):
    """A batch under way."""

    def land(self) -> list[PairReading | Abstained]:
        """Wait for it. Raises DeviceLost."""


class Device(Protocol):
    """What the engine needs of a device; `scoring.pair.device.PairDevice` is one."""

    kernel: str  # how the vocabulary is passed over, and why, where it is not as wished

    def launch(self, texts: Sequence[Ids]) -> Landing:
        """Queue a batch. Raises DeviceLost or OutOfDeviceMemory."""

    def free(self) -> None:
        """Give cached memory back. Raises DeviceLost."""

    def memory(self) -> DeviceMemory:
        """What is held now."""


class EngineStats(msgspec.Struct, frozen=True):
    """Counts since the start; memory as it is now."""

    tokens: int = 0  # of the texts that went through the device
    padding: int = 0  # positions computed beside them
    batches: int = 0
    busy_s: float = 0.0  # with a batch under way, seconds
    out_of_memory: int = 0
    losses: int = 0  # of the device
    batch_tokens: int = 0  # the budget as it is now
    memory: DeviceMemory = DeviceMemory()
    kernel: str = ""  # how the vocabulary is passed over: torch or triton, and why it is not triton on a card


class PairEngine:
    """Reads texts with a pair of models; see the module for what it does when that fails."""

    def __init__(
        self,
        models: PairModels,
        settings: PairSettings,
        *,
        reload: Callable[[], PairModels] | None = None,
        device: Callable[[PairModels], Device] | None = None,
        suspects: Path | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Read with `models`; `reload` brings them back after a loss, `suspects` is the file that remembers losses.

        `device` and `clock` are for tests."""
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
        self._fitting = 0  # batches since memory was short
        self._fitted = 0  # tokens of the longest text that was read
        self._losses = self._losses_to_suspects = 0  # with no text scored in between
        self._suspects = Suspects(suspects)
        self._closed = False
        self._tokens = self._padding = self._batches = 0
        self._out_of_memory = self._all_losses = 0
        self._busy_s = self._landed_at = 0.0

    def read(self, texts: Sequence[str]) -> list[Result]:
        """One result per text, in order; a PoisonText stands for a text that is to be buried.

        Raises DeviceLost, OutOfDeviceMemory (worth a retry), DeviceGone (the process is to end), CannotScore (closed).
        """
        losses = self._all_losses
        results: list[Result] = []
        for found in self._tokenised(texts):
            kept = [ids for ids in found if not isinstance(ids, Abstained)]
            read = iter(self._read(kept, losses))
            results += [ids if isinstance(ids, Abstained) else next(read) for ids in found]
        return results

    def read_ids(self, texts: Sequence[Ids]) -> list[Result]:
        """As `read`, from token ids; what is beyond max_tokens is cut off, the other rules of texts do not apply.

        Raises BadParameters for an id that the models do not have.
        """
        return self._read(texts, self._all_losses)

    def _read(self, texts: Sequence[Ids], losses: int, *, blames: bool = True) -> list[Result]:
        """As `read_ids`, for a call that began after so many losses.

        A call that waited while another lost the device fails with it and loads nothing: both are rolled back. Without
        `blames` a loss is no fault of the texts.
        """
        cut = [ids[: self._settings.max_tokens] for ids in texts]
        for ids in cut:
            if len(ids) and not 0 <= min(ids) <= max(ids) < self._words:
                raise BadParameters(f"token ids must be 0 to {self._words - 1}")
        results: list[Result] = [Abstained("one_token", len(ids)) for ids in cut]
        with self._turn:
            if self._device is None and losses != self._all_losses:
                raise DeviceLost("the device was lost while this call waited for it; the next one loads the models")
            together, alone = self._sorted_out(cut, results)
            try:
                self._run(cut, together, results, blames)
                for index in alone:
                    self._run(cut, [index], results, blames)
            finally:
                self._suspects.save()
        return results

    def warm_up(self) -> None:
        """Run a small batch, and on a card the largest: kernels are compiled, the memory is known to be enough.

        Raises NoDevice where a text of max_tokens does not fit, UnsupportedModel for models that give no numbers.
        """
        self._warm_up(8, 1)
        if self._settings.device != "cpu":
            longest = min(self._settings.max_tokens, self._budget)
            self._warm_up(longest, self._budget // longest)

    def _warm_up(self, length: int, count: int) -> None:
        for result in self._read([self._harmless(length)] * count, self._all_losses, blames=False):
            if isinstance(result, PoisonText):
                raise NoDevice(f"{result}; set score.pair.max_tokens lower, take smaller models, or a larger card")
            if isinstance(result, Abstained):
                raise UnsupportedModel(
                    f"{self._settings.observer} and {self._settings.performer} give no finite numbers as"
                    f" {self._settings.number_format}: copy them anew, or set another score.pair.dtype"
                )

    def _harmless(self, length: int) -> list[int]:
        """Ids that any pair has, and that are not all pads."""
        return [number % self._words for number in range(1, min(length, self._settings.max_tokens) + 1)]

    @property
    def batches(self) -> int:
        """Batches that were read since the start; unlike `stats` it does not ask the device."""
        return self._batches

    @property
    def loaded(self) -> bool:
        """False from the loss of the device until the models are loaded again."""
        return self._device is not None

    @property
    def stats(self) -> EngineStats:
        """Counts as they are now, from any thread."""
        device = self._device
        return EngineStats(
            self._tokens,
            self._padding,
            self._batches,
            self._busy_s,
            self._out_of_memory,
            self._all_losses,
            self._budget,
            DeviceMemory() if device is None else device.memory(),
            "" if device is None else device.kernel,
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
        self._refuse_if_closed()
        size = max(64, _SLICE_BATCHES * self._settings.token_budget // self._settings.max_tokens)
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        coming = deque(self._ahead.submit(tokenise, part, tokenizer, rules) for part in parts[:1])
        for part in [*parts[1:], None]:
            if not coming:
                return
            ready = coming.popleft().result()
            if part is not None:
                self._refuse_if_closed()
                coming.append(self._ahead.submit(tokenise, part, tokenizer, rules))
            yield ready

    def _sorted_out(self, texts: Sequence[Ids], results: list[Result]) -> tuple[list[int], list[int]]:
        """Indices of the texts that are read together, and of those that are read alone, the least suspected first."""
        together, alone = [], []
        for index, ids in enumerate(texts):
            if len(ids) < 2:
                continue
            losses = self._suspects.losses(ids)
            if losses is None:
                together.append(index)
            elif losses < LOSSES_ALONE:
                alone.append((losses, index))
            else:
                results[index] = PoisonText("this text has lost the device each time it was read alone")
        return together, [index for _, index in sorted(alone)]

    def _run(self, texts: Sequence[Ids], indices: Sequence[int], results: list[Result], blames: bool) -> None:
        """Read the texts at `indices` into `results`, two batches in flight."""
        if not indices:
            return
        budget = self._budget
        waiting = self._planned(texts, indices, budget)
        flying: deque[_Flying] = deque()
        batch: list[int] = []  # about to be launched
        device = self._working_device()
        try:
            while waiting or flying:
                self._refuse_if_closed()
                if len(flying) == _IN_FLIGHT or not waiting:
                    self._land(texts, flying, results)
                    continue
                batch = waiting.popleft()
                try:
                    flying.append(self._launched(device, texts, batch))
                except OutOfDeviceMemory as error:
                    while flying:
                        self._land(texts, flying, results)
                    budget = self._make_room(device, texts, batch, error)
                    if len(batch) > 1:
                        waiting = self._planned(texts, [*batch, *(i for one in waiting for i in one)], budget)
                    else:
                        results[batch[0]] = self._alone_again(device, texts, batch[0])
                batch = []
        except DeviceLost as error:
            blamed = [texts[index] for one in [batch, *(flight.batch for flight in flying)] for index in one]
            del device  # whoever keeps the error keeps this frame
            flying.clear()
            self._lose(blamed if blames else [], error)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise CannotScore("the engine was closed: it reads no more texts")

    def _planned(self, texts: Sequence[Ids], indices: Sequence[int], budget: int) -> deque[list[int]]:
        lengths = [len(texts[index]) for index in indices]
        return deque([indices[position] for position in batch] for batch in batches(lengths, budget))

    def _launched(self, device: Device, texts: Sequence[Ids], batch: list[int]) -> _Flying:
        started = self._clock()
        return _Flying(batch, device.launch([texts[index] for index in batch]), started)

    def _land(self, texts: Sequence[Ids], flying: deque[_Flying], results: list[Result]) -> None:
        """Wait for the batch that was launched first. It stays among `flying` if the device is lost meanwhile."""
        flight = flying[0]
        for index, result in zip(flight.batch, flight.landing.land(), strict=True):
            results[index] = result
            self._suspects.forget(texts[index])
        flying.popleft()
        self._losses = self._losses_to_suspects = 0
        lengths = [len(texts[index]) for index in flight.batch]
        self._fitted = max(self._fitted, *lengths)
        self._fitting += 1
        if self._fitting >= _GROWS_AFTER and self._budget < self._settings.token_budget:
            self._budget = min(2 * self._budget, self._settings.token_budget)
            self._fitting = 0
        self._tokens += sum(lengths)
        self._padding += len(lengths) * max(lengths) - sum(lengths)
        self._batches += 1
        now = self._clock()
        self._busy_s += now - max(flight.launched_at, self._landed_at)
        self._landed_at = now

    def _make_room(self, device: Device, texts: Sequence[Ids], batch: Sequence[int], error: OutOfDeviceMemory) -> int:
        """After `batch` did not fit: the budget of what is left of this call. Later ones have max_tokens at least."""
        _forget_frames(error)
        device.free()
        self._out_of_memory += 1
        self._fitting = 0
        if len(batch) == 1:
            return self._budget
        half = max(1, len(batch) * max(len(texts[index]) for index in batch) // 2)
        self._budget = min(self._budget, max(half, self._settings.max_tokens))
        return half

    def _alone_again(self, device: Device, texts: Sequence[Ids], index: int) -> Result:
        """Read one text with nothing else on the device, for the second and last time."""
        flying: deque[_Flying] = deque()
        results: list[Result] = [Abstained("one_token")] * len(texts)
        try:
            flying.append(self._launched(device, texts, [index]))
        except OutOfDeviceMemory as error:
            self._make_room(device, texts, [index], error)
            length = len(texts[index])
            if length <= self._fitted:
                raise OutOfDeviceMemory(
                    f"texts of {self._fitted} tokens have fitted into the device's memory, one of {length} does not"
                    " now: end what else holds that memory; the batch is tried again"
                ) from None
            return PoisonText(f"a text of {length} tokens does not fit into the device's memory: {error}")
        self._land(texts, flying, results)
        return results[index]

    def _working_device(self) -> Device:
        """The device; after a loss it is loaded again, and tried. Raises DeviceLost or DeviceGone."""
        if self._device is not None:
            return self._device
        device: Device | None = None
        try:
            device = self._on(self._reload())
            device.launch([self._harmless(8)]).land()
            self._device = device
            return device
        except (NoDevice, DeviceLost, OutOfDeviceMemory) as error:
            device = None
            lost = DeviceLost(f"the models could not be loaded again: {error}")
        except Exception as error:
            raise DeviceGone(f"the device was lost and its models cannot be loaded again: {error}") from error
        self._lose([], lost)

    def _lose(self, blamed: Sequence[Ids], error: DeviceLost) -> NoReturn:
        """Remember the loss and which texts were in flight. Raises DeviceLost, or DeviceGone for one too many."""
        self._device = None
        _forget_frames(error)
        self._all_losses += 1
        alone = len(blamed) == 1
        if alone and self._suspects.losses(blamed[0]) is not None:
            self._losses_to_suspects += 1
        else:
            self._losses += 1
        self._suspects.blame(blamed, alone=alone)
        said = (
            f"{error} (the texts in flight are not noted: {problem})" if (problem := self._suspects.problem) else error
        )
        if self._losses >= _LOSSES_IN_A_ROW or self._losses_to_suspects >= _LOSSES_TO_SUSPECTS:
            lost = self._losses + self._losses_to_suspects
            raise DeviceGone(f"lost {lost} times with no text scored in between: {said}") from error
        raise DeviceLost(str(said)) from error


class _Flying(NamedTuple):
    batch: list[int]
    landing: Landing
    launched_at: float


def _forget_frames(error: Exception) -> None:
    """Drop what led to `error`: its frames hold the batch's tensors, or the models that are to be loaded anew."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
