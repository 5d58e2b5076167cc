"""The model worker: one model, whose batches and attention are computed in turn."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar

from regard.base.shapes import Tensor
from regard.base.special_tokens import END
from regard.batching.batch import padded
from regard.compute.device import beside
from regard.decoding.constraints.batch import BatchConstraints
from regard.decoding.greedy import follow_paths
from regard.decoding.rules import Rules
from regard.decoding.search import LengthPenalty
from regard.documents.segments import SENTENCE_ERRORS
from regard.engines.torch_engine import TorchEngine
from regard.serving import attention as attention_views
from regard.serving.batcher import Batcher, QueuedSentence, TranslationOptions, TranslationOutcome
from regard.serving.errors import BusyError, bad_request
from regard.serving.limits import ServerSettings
from regard.serving.memory import ModelMemory
from regard.serving.models import AnyServedModel
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.results import Translation


class ClientGoneError(Exception):
    """Raised when the client of a stream has disconnected; ends the search."""


def stream_greedy(
    translator: LoadedTranslator,
    request: attention_views.EncodedRequest,
    on_text: Callable[[str], None],
) -> None:
    """Decode greedily and call `on_text` with the text so far after every token.

    The tokens of a prefix are decoded without a call until the prefix is complete.
    """
    source, mask = padded([request.source], after=END)
    settings = request.settings
    limits = TorchEngine(translator.model).limits(mask.sum(dim=1), settings)
    constrained = None
    if request.constraints:
        vocab = translator.target_tokenizer.size
        # Required phrases are left to the beam search that follows.
        constraints = replace(request.constraints, required=())
        constrained = BatchConstraints([constraints], limits=limits, vocab=vocab)
    source, mask, limits, constrained = beside(
        translator.model, (source, mask, limits, constrained)
    )
    written: list[int] = []

    def pick(values: Tensor, numbers: Tensor) -> Tensor:
        tokens = values.argmax(dim=1)
        if int(tokens[0]) != END:
            written.append(int(tokens[0]))
            if len(written) >= len(request.constraints.prefix):
                on_text(translator.target_tokenizer.decode(written))
        return tokens

    follow_paths(
        translator.model,
        source,
        mask,
        rules=Rules(limits=limits, constraints=constrained),
        pick=pick,
        penalty=LengthPenalty(),
    )


T = TypeVar("T")
JobKind = Literal["batch", "view"]


class ModelThread:
    """The work of one model, batches and attention requests in turn, one piece at a time.

    Neither waits for more than one piece of work of the other kind. The threads are those of a
    pool that models share, or one of its own.
    """

    def __init__(self, name: str, pool: ThreadPoolExecutor | None = None):
        self._shared = pool is not None
        self._executor = pool or ThreadPoolExecutor(1, thread_name_prefix=f"regard-{name}")
        self._waiting: dict[JobKind, deque[asyncio.Future[None]]] = {
            "batch": deque(),
            "view": deque(),
        }
        self._busy = False

    async def run(self, kind: JobKind, work: Callable[[], T]) -> T:
        """Return the result of a function that runs in the thread when it is its turn."""
        loop = asyncio.get_running_loop()
        await self._turn(kind, loop)
        done = self._executor.submit(_contained, work)
        # A caller that is cancelled goes at once, but the thread is free only when it is done.
        done.add_done_callback(lambda _: loop.call_soon_threadsafe(self._pass_on, kind))
        return await asyncio.wrap_future(done)

    def shutdown(self) -> None:
        """Wait for the work that is running, and end the thread; a shared pool has other users."""
        if not self._shared:
            self._executor.shutdown()

    async def _turn(self, kind: JobKind, loop: asyncio.AbstractEventLoop) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = loop.create_future()
        self._waiting[kind].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(kind)
            raise

    def _pass_on(self, kind: JobKind) -> None:
        """Give the turn to the other kind of work, if any waits, or else to the same kind."""
        other: JobKind = "view" if kind == "batch" else "batch"
        for waiting in (self._waiting[other], self._waiting[kind]):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._busy = False


def _contained(work: Callable[[], T]) -> T:
    """Return the result of the work; what would end a thread is an error like any other."""
    try:
        return work()
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"the work ended with {type(error).__name__}") from error


# Gets a loaded model and a function to tell parts of its result to; returns the whole.
GrowingWork: TypeAlias = Callable[[Any, Callable[[Any], None]], Any]


class ViewWorker:
    """Answers questions about one model in threads, so that the event loop stays free."""

    def __init__(self, model: Any, settings: ServerSettings, memory: ModelMemory):
        self.model = model
        self.description: dict[str, Any] = model.description()
        self._memory = memory
        memory.add(model)
        self._settings = settings
        self._views = 0
        self._thread = ModelThread(model.name, memory.pool)

    async def ask(self, question: Callable[[Any], T]) -> T:
        """Return what a function says of the loaded model, when it is its turn in the thread."""
        async with self._memory.using(self.model.name) as loaded:
            return await self._run_view(lambda: question(loaded))

    async def growing(
        self, work: Callable[[Any, Callable[[Any], None]], Any]
    ) -> AsyncIterator[Any]:
        """Yield what a function tells of on its way, then what it returns.

        The function gets the loaded model, and a function to call with each part, which raises
        ClientGoneError when nobody listens any more.
        """
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[Any] = asyncio.Queue()
        gone, end = threading.Event(), object()

        def tell(part: Any) -> None:
            if gone.is_set():
                raise ClientGoneError
            loop.call_soon_threadsafe(parts.put_nowait, part)

        running = asyncio.ensure_future(self.ask(lambda loaded: work(loaded, tell)))
        running.add_done_callback(lambda done: parts.put_nowait(end))
        # Reading the exception keeps asyncio from logging it as never retrieved.
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            while (part := await parts.get()) is not end:
                yield part
            yield await running
        finally:
            gone.set()
            running.cancel()

    async def _run_view(self, work: Callable[[], T]) -> T:
        """Run a function in the model's thread, unless too many already wait for it."""
        if self._views >= self._settings.views:
            raise BusyError(retry_after=self.seconds_of_work())
        self._views += 1
        try:
            return await self._thread.run("view", work)
        finally:
            self._views -= 1

    def seconds_of_work(self) -> int:
        """Return how long a client that is turned away should wait."""
        return 1

    async def stop(self) -> None:
        """Wait for what is running, then end the thread."""
        await asyncio.to_thread(self._thread.shutdown)


class ModelWorker(ViewWorker):
    """Runs one translator: batches for texts, and views."""

    model: AnyServedModel

    def __init__(
        self,
        model: AnyServedModel,
        settings: ServerSettings,
        memory: ModelMemory,
        *,
        on_batch: Callable[[int, int], Any] = lambda sentences, tokens: None,
    ):
        super().__init__(model, settings, memory)
        self._batching: asyncio.Task[None] | None = None
        self.batcher = Batcher(
            self._run_batch,
            sentences=settings.batch_sentences,
            tokens=settings.batch_tokens,
            wait=settings.wait_ms / 1_000,
            capacity=settings.queue,
            on_batch=on_batch,
        )

    def start(self) -> None:
        """Start translating batches; call it inside a running event loop."""
        self._batching = asyncio.create_task(self.batcher.run())

    @property
    def running(self) -> bool:
        """Whether the worker takes sentences."""
        return self._batching is not None and not self._batching.done()

    async def stop(self) -> None:
        """Finish the batch that is running, then end the thread."""
        if self._batching is not None:
            self._batching.cancel()
            await asyncio.gather(self._batching, return_exceptions=True)
        await super().stop()

    def seconds_of_work(self) -> int:
        """Return how long the batches that wait will take."""
        return self.batcher.seconds_of_work()

    async def translate(
        self, texts: Sequence[str], options: TranslationOptions
    ) -> list[Translation]:
        """Translate sentences, in batches shared with other requests."""
        async with self._memory.using(self.model.name) as translator:
            encode = translator.source_tokenizer.encode
            sentences = [QueuedSentence(text, len(encode(text)) + 1, options) for text in texts]
            longest = max((sentence.tokens - 1 for sentence in sentences), default=0)
            limit = self._settings.sentence_tokens
            if longest > limit:
                raise bad_request(
                    f"A sentence has {longest} tokens, more than {limit}: split it into shorter "
                    "ones."
                )
            return await self.batcher.translate(sentences)

    async def attend(self, request: attention_views.AttentionRequest) -> dict[str, Any]:
        """Return a translation with its attention, steps and beam."""
        return await self.ask(
            lambda translator: self._view(translator, self._encode(translator, request))
        )

    async def stream(
        self, request: attention_views.AttentionRequest
    ) -> AsyncIterator[str | dict[str, Any]]:
        """Yield the text as it grows, then what `attend` returns."""

        def decode(translator: LoadedTranslator, on_text: Callable[[str], None]) -> dict[str, Any]:
            encoded = self._encode(translator, request)
            if not encoded.ended:
                stream_greedy(translator, encoded, on_text)
            return self._view(translator, encoded)

        parts: AsyncIterator[str | dict[str, Any]] = self.growing(decode)
        try:
            async for part in parts:
                yield part
        finally:
            await parts.aclose()  # type: ignore[attr-defined]

    def _encode(
        self, translator: LoadedTranslator, request: attention_views.AttentionRequest
    ) -> attention_views.EncodedRequest:
        return attention_views.encode_request(
            translator,
            request,
            max_tokens=self._settings.view_tokens,
            max_beam=self._settings.max_beam,
        )

    def _view(
        self, translator: LoadedTranslator, request: attention_views.EncodedRequest
    ) -> dict[str, Any]:
        return attention_views.attention_view(translator, self.model.name, request)

    async def _run_batch(self, sentences: Sequence[QueuedSentence]) -> list[TranslationOutcome]:
        translator = self._memory.held(self.model.name)
        if translator is None:  # whoever waited for these sentences has gone
            return [BusyError(retry_after=1)] * len(sentences)
        return await self._thread.run("batch", lambda: translate_batch(translator, sentences))


def translate_batch(
    translator: LoadedTranslator, sentences: Sequence[QueuedSentence]
) -> list[TranslationOutcome]:
    """Return for each sentence its translation, or the error that it caused."""
    outcomes: dict[int, TranslationOutcome] = {}
    for options in dict.fromkeys(sentence.options for sentence in sentences):
        places = [place for place, each in enumerate(sentences) if each.options == options]
        texts = [sentences[place].text for place in places]
        found = _translate_alike(translator, texts, options)
        outcomes.update(zip(places, found, strict=True))
    return [outcomes[place] for place in range(len(sentences))]


def _translate_alike(
    translator: LoadedTranslator, texts: Sequence[str], options: TranslationOptions
) -> list[TranslationOutcome]:
    """Translate sentences with the same options; one that fails does not affect the others."""
    left = dict(enumerate(texts))
    outcomes: dict[int, TranslationOutcome] = {}
    width = max(translator.recipe.decoding.beam, options.n_best)
    while left:
        places = list(left)
        try:
            results = translator.translate(
                list(left.values()), n_best=options.n_best, attention=options.attention, beam=width
            )
        except SENTENCE_ERRORS as error:
            place = places[error.index]
            outcomes[place] = bad_request(f"A sentence cannot be translated: {error.problem}.")
            del left[place]
            continue
        outcomes.update(zip(places, results, strict=True))
        break
    return [outcomes[place] for place in range(len(texts))]
