"""The engine of detectors with language models: batches texts, and handles a full or failing device.

A thread tokenises a slice of texts ahead. A text has one window of tokens or more; windows, called texts below, are
batched by length. Two batches are in flight: while one is on the device the next is queued. Several threads may call;
they take turns at the device.

Faults:

    out of memory   the token budget is halved, not below max_tokens, and doubled again after many batches that fitted.
                    A text that does not fit alone is PoisonText; if a text as long has fitted before, the memory is
                    short for now, and that is OutOfDeviceMemory, worth a retry.
    device lost     DeviceLost, worth a retry: the next call loads the models again, tries them on a few tokens, and
                    reads the texts that were in flight one by one, last. A text that loses the device twice when it is
                    read alone is PoisonText. The third loss without a text scored in between is DeviceGone: the process
                    must end. Losses to a suspect that is read alone count separately, up to a higher number. Suspects
                    outlive the process (scoring/engine/suspects.py).
    cannot reload   the files of the models have changed, or are gone: DeviceGone at once.
    not a number    that text alone has no score ("not_a_number").
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Generic, NoReturn, Protocol, TypeAlias, TypeVar

from scoring.engine.settings import EngineSettings
from scoring.engine.suspects import LOSSES_ALONE, Suspects
from scoring.engine.tokens import batches, plain_tokenizer, tokenise
from scoring.errors import (
    CannotScore,
    DeviceGone,
    DeviceLost,
    NoDevice,
    OutOfDeviceMemory,
    PoisonText,
    UnsupportedModel,
)
from scoring.interface import DetectorCounts, TextScore

Ids = Sequence[int]
Reading = TypeVar("Reading")  # the numbers of a text that a detector's score is made of
Models = TypeVar("Models", bound="LoadedModels")
Result: TypeAlias = Reading | TextScore | PoisonText
_IN_FLIGHT = 2
_LOSSES_IN_A_ROW, _LOSSES_TO_SUSPECTS = 3, 8
_GROWS_AFTER = 100  # batches that fitted
_SLICE_BATCHES = 8  # tokenised at a time: enough to find texts of one length, few enough to start soon


class LoadedModels(Protocol):
    """Models on a device; `words` is the limit of readable ids. Without a tokenizer only ids are read."""

    @property
    def tokenizer(self) -> Any: ...
    @property
    def words(self) -> int: ...


class FlyingBatch(Protocol):
    """A batch in flight."""

    def land(self) -> Sequence[Any]:
        """Readings of the batch's texts, in order, or TextScore for a text without numbers. Raises DeviceLost."""


class Device(Protocol):
    """Runs batches on the device of the models."""

    def launch(self, texts: Sequence[Ids]) -> FlyingBatch:
        """Queue texts. Raises DeviceLost or OutOfDeviceMemory."""

    def free(self) -> None:
        """Return cached memory to the device. Raises DeviceLost."""

    def memory_bytes(self) -> tuple[int, int, int]:
        """Memory of a GPU: held by tensors of this process, the most ever held, total; zeros for a CPU."""


_Flight = tuple[list[int], FlyingBatch]  # indices of its texts


class ModelEngine(Generic[Models, Reading]):
    """Reads texts with the models of a detector. See the module for its behaviour on faults."""

    fewest_ids: ClassVar[int] = 1  # a shorter text is not read: one_token

    def __init__(
        self,
        models: Models,
        settings: EngineSettings,
        on: Callable[[Models], Device],
        reload: Callable[[], Models],
        suspects: Path | None,
    ) -> None:
        """Read with `models` `on` a device.

        `reload` loads them again after a loss, `suspects` is the file that remembers losses.
        """
        self._settings = settings
        self._reload = reload
        self._on = on
        self._tokenizer: Any = models.tokenizer and plain_tokenizer(models.tokenizer, settings.max_tokens)
        self._words = models.words
        self._device: Device | None = self._on(models)
        self._turn = threading.Lock()  # one thread on the device
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="tokens")
        self._budget = settings.token_budget
        self._fitting = 0  # batches since memory was short
        self._fitted = 0  # tokens of the longest text read
        self._losses = self._losses_to_suspects = 0  # without a scored text in between
        self._suspects = Suspects(suspects)
        self._closed = False
        self._tokens = self._padding = self._out_of_memory = self._all_losses = 0
        self.batches = 0  # read since the start

    def read(self, texts: Sequence[str]) -> list[list[Reading] | TextScore | PoisonText]:
        """The readings of the windows of each text, in order; PoisonText for a text that must be dead-lettered.

        Raises DeviceLost, OutOfDeviceMemory (worth a retry), DeviceGone (the process must end), CannotScore (closed).
        """
        losses = self._all_losses
        results: list[list[Reading] | TextScore | PoisonText] = []
        for part in self._tokenised(texts):
            read = iter(self._read([ids for text in part if not isinstance(text, TextScore) for ids in text], losses))
            for text in part:
                results.append(text if isinstance(text, TextScore) else _joined([next(read) for _ in text]))
        return results

    def read_ids(self, texts: Sequence[Ids]) -> list[Result[Reading]]:
        """As `read`, from ids that the models have; cut at max_tokens, the other rules of texts do not apply."""
        return self._read(texts, self._all_losses)

    def _read(self, texts: Sequence[Ids], losses: int, *, blames: bool = True) -> list[Result[Reading]]:
        """As `read_ids`, for a call that began after this many losses.

        A call that waited while another lost the device fails with it and loads nothing: both are rolled back. Without
        `blames`, a loss is not blamed on the texts.
        """
        cut = [ids[: self._settings.max_tokens] for ids in texts]
        results: list[Result[Reading]] = [TextScore(abstain="one_token", tokens=len(ids)) for ids in cut]
        with self._turn:
            if self._device is None and losses != self._all_losses:
                raise DeviceLost("the device was lost while this call waited for it; the next one loads the models")
            try:
                for indices in self._groups(cut, results):
                    self._run(cut, indices, results, blames)
            finally:
                self._suspects.save()
        return results

    def warm_up(self) -> None:
        """Run a small batch, and on a GPU the largest: this compiles kernels and shows that the memory is enough.

        Raises NoDevice if a text of max_tokens does not fit, UnsupportedModel for models without finite numbers.
        """
        shapes = [(8, 1)]  # tokens of a text, texts
        if self._settings.device != "cpu":
            longest = min(self._settings.max_tokens, self._budget)
            shapes.append((longest, self._budget // longest))
        for length, count in shapes:
            for result in self._read([self._harmless(length)] * count, self._all_losses, blames=False):
                if isinstance(result, PoisonText):
                    raise NoDevice(
                        f"{result}; set {self._settings.table}.max_tokens lower, take a smaller model, or a larger card"
                    )
                if isinstance(result, TextScore):
                    raise UnsupportedModel(
                        f"{self._settings.title}: no finite numbers as {self._settings.number_format}; copy the weights"
                        " anew, or run them in another number format"
                    )

    def _harmless(self, length: int) -> list[int]:
        return [number % self._words for number in range(1, min(length, self._settings.max_tokens) + 1)]

    @property
    def loaded(self) -> bool:
        """Whether the models are loaded; False after a loss of the device."""
        return self._device is not None

    @property
    def work(self) -> DetectorCounts:
        device = self._device
        used, peak, total = (0, 0, 0) if device is None else device.memory_bytes()
        return DetectorCounts(
            tokens=self._tokens,
            padding=self._padding,
            out_of_memory=self._out_of_memory,
            lost=self._all_losses,
            batch_tokens=self._budget,
            used_bytes=used,
            peak_bytes=peak,
            total_bytes=total,
        )

    def close(self) -> None:
        """Stop the tokenising thread; a call in progress raises CannotScore once a batch has landed."""
        self._closed = True
        self._ahead.shutdown(wait=False, cancel_futures=True)

    def _tokenised(self, texts: Sequence[str]) -> Iterator[list[list[Ids] | TextScore]]:
        """Slices of `texts` as tokens; each is tokenised while the one before it is read."""
        size = max(64, _SLICE_BATCHES * self._settings.token_budget // self._settings.max_tokens)
        coming: deque[Future[list[list[Ids] | TextScore]]] = deque()
        for start in range(0, len(texts), size):
            self._refuse_if_closed()
            part = texts[start : start + size]
            coming.append(self._ahead.submit(tokenise, part, self._tokenizer, self._settings))
            if len(coming) > 1:
                yield coming.popleft().result()
        if coming:
            yield coming.popleft().result()

    def _groups(self, texts: Sequence[Ids], results: list[Result[Reading]]) -> list[list[int]]:
        """Indices of the texts that are read together; then each suspect alone, the least suspected first."""
        together, alone = [], []
        for index, ids in enumerate(texts):
            if len(ids) < self.fewest_ids:
                continue
            losses = self._suspects.losses(ids)
            if losses is None:
                together.append(index)
            elif losses < LOSSES_ALONE:
                alone.append((losses, index))
            else:
                results[index] = PoisonText("this text has lost the device each time it was read alone")
        return [*([together] if together else []), *([index] for _, index in sorted(alone))]

    def _run(self, texts: Sequence[Ids], indices: Sequence[int], results: list[Result[Reading]], blames: bool) -> None:
        """Read the texts at `indices` into `results`, two batches in flight."""
        waiting = self._plan(texts, indices, self._budget)
        flying: deque[_Flight] = deque()
        batch: list[int] = []  # about to be launched
        retried = -1  # a text that did not fit, and is read alone on the device
        device = self._working_device()
        try:
            while waiting or flying:
                self._refuse_if_closed()
                if len(flying) == _IN_FLIGHT or not waiting:
                    self._land(texts, flying, results)
                    continue
                batch = waiting.popleft()
                try:
                    flying.append((batch, device.launch([texts[index] for index in batch])))
                except OutOfDeviceMemory as error:
                    while flying:
                        self._land(texts, flying, results)
                    budget = self._make_room(device, texts, batch, error)
                    if len(batch) > 1:
                        waiting = self._plan(texts, [*batch, *(i for one in waiting for i in one)], budget)
                    elif batch[0] == retried:
                        results[retried] = self._refuse_too_large(len(texts[retried]), error)
                    else:
                        retried = batch[0]
                        waiting.appendleft(batch)
                batch = []
        except DeviceLost as error:
            blamed = [texts[index] for lost in [batch, *(indices for indices, _ in flying)] for index in lost]
            del device  # a kept error keeps this frame
            flying.clear()
            self._lose(blamed if blames else [], error)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise CannotScore("the engine was closed: it reads no more texts")

    def _plan(self, texts: Sequence[Ids], indices: Sequence[int], budget: int) -> deque[list[int]]:
        lengths = [len(texts[index]) for index in indices]
        return deque([indices[position] for position in batch] for batch in batches(lengths, budget))

    def _land(self, texts: Sequence[Ids], flying: deque[_Flight], results: list[Result[Reading]]) -> None:
        """Wait for the batch that was launched first. It stays among `flying` if the device is lost meanwhile."""
        indices, batch = flying[0]
        for index, result in zip(indices, batch.land(), strict=True):
            results[index] = result
            self._suspects.forget(texts[index])
        del batch
        flying.popleft()
        self._losses = self._losses_to_suspects = 0
        lengths = [len(texts[index]) for index in indices]
        self._fitted = max(self._fitted, *lengths)
        self._fitting += 1
        if self._fitting >= _GROWS_AFTER and self._budget < self._settings.token_budget:
            self._budget = min(2 * self._budget, self._settings.token_budget)
            self._fitting = 0
        self._tokens += sum(lengths)
        self._padding += len(lengths) * max(lengths) - sum(lengths)
        self.batches += 1

    def _make_room(self, device: Device, texts: Sequence[Ids], batch: Sequence[int], error: OutOfDeviceMemory) -> int:
        """Reduce the budget for the rest of this call, as `batch` did not fit; later calls have max_tokens at least."""
        _forget_frames(error)
        device.free()
        self._out_of_memory += 1
        self._fitting = 0
        if len(batch) == 1:
            return self._budget
        half = max(1, len(batch) * max(len(texts[index]) for index in batch) // 2)
        self._budget = min(self._budget, max(half, self._settings.max_tokens))
        return half

    def _refuse_too_large(self, length: int, error: OutOfDeviceMemory) -> PoisonText:
        """The error of a text that does not fit alone. Raises OutOfDeviceMemory if one as long has fitted before."""
        if length <= self._fitted:
            raise OutOfDeviceMemory(
                f"texts of {self._fitted} tokens have fitted into the device's memory, one of {length} does not"
                " now: end what else holds that memory; the batch is tried again"
            ) from None
        return PoisonText(f"a text of {length} tokens does not fit into the device's memory: {error}")

    def _working_device(self) -> Device:
        """The device; after a loss it is loaded and tried again. Raises DeviceLost or DeviceGone."""
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
        """Remember the loss and the texts in flight. Raises DeviceLost, or DeviceGone after too many losses."""
        self._device = None
        _forget_frames(error)
        self._all_losses += 1
        alone = len(blamed) == 1
        if alone and self._suspects.losses(blamed[0]) is not None:
            self._losses_to_suspects += 1
        else:
            self._losses += 1
        self._suspects.blame(blamed, alone=alone)
        problem = self._suspects.problem
        said = f"{error} (the texts in flight are not noted: {problem})" if problem else str(error)
        if self._losses >= _LOSSES_IN_A_ROW or self._losses_to_suspects >= _LOSSES_TO_SUSPECTS:
            lost = self._losses + self._losses_to_suspects
            raise DeviceGone(f"lost {lost} times with no text scored in between: {said}") from error
        raise DeviceLost(said) from error


def _joined(windows: Sequence[Result[Reading]]) -> list[Reading] | TextScore | PoisonText:
    """The readings; a window that is poison, or has no number, stands for the whole text."""
    failed = [window for window in windows if isinstance(window, TextScore | PoisonText)]
    if failed:
        return next((window for window in failed if isinstance(window, PoisonText)), failed[0])
    return [window for window in windows if not isinstance(window, TextScore | PoisonText)]


def _forget_frames(error: Exception) -> None:
    """Drop the traceback of `error`: its frames hold the batch's tensors, or the models to be reloaded."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
