"""A translation as it is being written: the text so far, after every symbol of a greedy search."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from regard.base.shapes import Tensor
from regard.base.special_tokens import END
from regard.batching.batch import padded
from regard.decoding.constraints.batch import BatchConstraints
from regard.decoding.greedy import follow_paths
from regard.decoding.rules import Rules
from regard.decoding.search import LengthPenalty
from regard.documents.segments import SENTENCE_ERRORS
from regard.engines.torch_engine import TorchEngine
from regard.serving.attention import AttentionRequest, Task, look, read_task
from regard.serving.batcher import Batcher, Found, Item, Manner
from regard.serving.errors import BusyError, bad_request
from regard.serving.limits import ServerSettings
from regard.serving.models import ServedModel
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.results import Translation


class NobodyListensError(Exception):
    """Raised by a listener that has gone away; ends the search."""


def write_greedily(translator: LoadedTranslator, task: Task, heard: Callable[[str], None]) -> None:
    """Call `heard` with the text so far after every symbol; text that was given comes first."""
    source, mask = padded([task.source], after=END)
    settings = task.settings
    limits = TorchEngine(translator.model).limits(mask.sum(dim=1), settings)
    constrained = None
    if task.constraints:
        vocab = translator.target_tokenizer.size
        # What must come somewhere is found by the wider search that follows.
        asked = replace(task.constraints, required=())
        constrained = BatchConstraints([asked], limits=limits, vocab=vocab)
    written: list[int] = []

    def pick(values: Tensor, numbers: Tensor) -> Tensor:
        symbols = values.argmax(dim=1)
        if int(symbols[0]) != END:
            written.append(int(symbols[0]))
            if len(written) >= len(task.constraints.prefix):
                heard(translator.target_tokenizer.decode(written))
        return symbols

    follow_paths(
        translator.model,
        source,
        mask,
        rules=Rules(limits=limits, constraints=constrained),
        pick=pick,
        penalty=LengthPenalty(),
    )


Value = TypeVar("Value")


class ModelWorker:
    """Serves one model; a thread of its own keeps the event loop free."""

    def __init__(
        self,
        model: ServedModel,
        settings: ServerSettings,
        *,
        watch: Callable[[int, int], Any] = lambda sentences, tokens: None,
    ):
        self.model = model
        self.description = model.description()
        self._settings = settings
        self._longest = settings.sentence_symbols
        self._views = 0
        self._work: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"regard-{model.name}")
        self.gatherer = Batcher(
            self._run_batch,
            sentences=settings.batch_sentences,
            tokens=settings.batch_tokens,
            wait=settings.wait_ms / 1_000,
            room=settings.queue,
            watch=watch,
        )

    def start(self) -> None:
        """Begin to work, inside a running event loop."""
        self._work = asyncio.create_task(self.gatherer.work())

    async def stop(self) -> None:
        """Finish what has begun, and end."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)

    async def translate(self, texts: Sequence[str], manner: Manner) -> list[Translation]:
        """Translate sentences together with those of other requests."""
        encode = self.model.translator.source_tokenizer.encode
        items = [Item(text, len(encode(text)) + 1, manner) for text in texts]
        longest, most = max((item.tokens - 1 for item in items), default=0), self._longest
        if longest > most:
            raise bad_request(
                f"A sentence has {longest} symbols, more than {most}: split it into shorter ones."
            )
        return await self.gatherer.translate(items)

    async def look(self, question: AttentionRequest) -> dict[str, Any]:
        """Return a translation seen from inside."""
        return await self._view(lambda: self._look(self._task(question)))

    async def stream(self, question: AttentionRequest) -> AsyncIterator[str | dict[str, Any]]:
        """Yield the text as it grows, and at last what `look` returns."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        gone = threading.Event()

        def hear(text: str) -> None:
            if gone.is_set():
                raise NobodyListensError
            loop.call_soon_threadsafe(heard.put_nowait, text)

        def write() -> dict[str, Any]:
            task = self._task(question)
            if not task.ended:
                write_greedily(self.model.translator, task, hear)
            return self._look(task)

        work = asyncio.ensure_future(self._view(write))
        work.add_done_callback(lambda done: heard.put_nowait(None))
        work.add_done_callback(lambda done: done.cancelled() or done.exception())  # heard of
        try:
            while (text := await heard.get()) is not None:
                yield text
            yield await work
        finally:
            gone.set()
            work.cancel()

    async def _view(self, work: Callable[[], Value]) -> Value:
        """Let the model's thread do something, if not too much of that is waiting."""
        if self._views >= self._settings.views:
            raise BusyError(retry_after=self.gatherer.seconds_of_work())
        self._views += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._views -= 1

    def _task(self, question: AttentionRequest) -> Task:
        settings = self._settings
        return read_task(
            self.model.translator,
            question,
            view_symbols=settings.view_symbols,
            max_beam=settings.max_beam,
        )

    def _look(self, task: Task) -> dict[str, Any]:
        return look(self.model.translator, self.model.name, task)

    async def _run_batch(self, items: Sequence[Item]) -> list[Found]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, translate_batch, self.model.translator, items
        )


def translate_batch(translator: LoadedTranslator, items: Sequence[Item]) -> list[Found]:
    """Return the translation of each item, or what is wrong with it."""
    found: list[Found | None] = [None] * len(items)
    for manner in dict.fromkeys(item.manner for item in items):
        places = [place for place, item in enumerate(items) if item.manner == manner]
        for place, result in zip(
            places, _translated(translator, [items[p].text for p in places], manner), strict=True
        ):
            found[place] = result
    return [result for result in found if result is not None]


def _translated(translator: LoadedTranslator, texts: Sequence[str], manner: Manner) -> list[Found]:
    """Translate sentences that want the same; one that cannot be translated spoils no other."""
    left = dict(enumerate(texts))
    wrong: dict[int, Found] = {}
    width = max(translator.recipe.decoding.beam, manner.n_best)
    while left:
        places = list(left)
        try:
            results = translator.translate(
                list(left.values()), n_best=manner.n_best, attention=manner.attention, beam=width
            )
        except SENTENCE_ERRORS as error:
            place = places[error.index]
            wrong[place] = bad_request(f"A sentence cannot be translated: {error.problem}.")
            del left[place]
            continue
        return [
            wrong[place] if place in wrong else results[places.index(place)]
            for place in range(len(texts))
        ]
    return [wrong[place] for place in range(len(texts))]
