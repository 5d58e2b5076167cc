"""Which models are in memory: each is loaded when it is first asked for.

Beyond a limit the least recently used are unloaded. Models are loaded one after the other, so that
each sees what the one before it has taken. One that cannot be loaded is an error of its own
requests alone.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from regard.base.budgets import MEGABYTE
from regard.base.errors import RegardError, SettingsError
from regard.compute.device import available_cores, return_memory
from regard.serving.errors import ApiError
from regard.serving.middleware import LOG, log_failure
from regard.serving.task_models import LEAST_BYTES

FEWEST_THREADS = 4  # so that a long search of one model does not keep all others waiting
# A model that could not be loaded is not tried again for this long: each attempt takes time.
FAILED_SECONDS = 10.0


def pool_of_threads() -> ThreadPoolExecutor:
    """Return the threads that all models of a server share."""
    return ThreadPoolExecutor(max(FEWEST_THREADS, available_cores()), thread_name_prefix="regard")


def resident_bytes() -> int | None:
    """Return how much memory this process has; None where the system does not tell."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def require_room(limit: int | None) -> None:
    """Refuse a limit that the server exceeds before it has loaded a model."""
    taken = resident_bytes() or 0
    if limit is not None and taken + LEAST_BYTES > limit:
        raise SettingsError(
            f"--memory {limit / MEGABYTE:,.0f}MiB is too little: the server takes "
            f"{taken / MEGABYTE:,.0f} MiB without a model. Allow at least "
            f"{(taken + LEAST_BYTES) / MEGABYTE:,.0f}MiB."
        )


@runtime_checkable
class Loadable(Protocol):
    """A model by its name, which can be loaded."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def kept(self) -> bool:
        """Whether it is in memory already, and stays there."""
        ...

    @property
    def translator(self) -> Any:
        """The translator of one that is kept."""
        ...

    @property
    def bytes_needed(self) -> int:
        """The memory that it is expected to take."""
        ...

    def load(self) -> Any:
        """Return the translator."""
        ...


class _Place:
    """One model and, while it is in memory, its translator."""

    def __init__(self, model: Loadable):
        self.model = model
        self.translator: Any = None
        self.loading: asyncio.Task[Any] | None = None
        self.users = 0
        self.left = asyncio.Event()
        """Set when the last user has gone."""
        self.leaving = False
        """Whether it will be unloaded; then it takes no further users."""
        self.gone = asyncio.Event()
        """Set when it has been unloaded."""
        self.failed: float | None = None
        self.loads = 0

    @property
    def state(self) -> str:
        """The state in a word, for people and programs."""
        if self.translator is not None and not self.leaving:
            return "loaded"
        if self.loading is not None:
            return "loading"
        return "unloaded" if self.failed is None else "failed"


class ModelMemory:
    """Loads models when they are used, and unloads others beyond `limit` bytes of this process."""

    def __init__(
        self,
        *,
        limit: int | None = None,
        pool: ThreadPoolExecutor | None = None,
        resident: Callable[[], int | None] = resident_bytes,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.limit = limit
        self.pool = pool_of_threads() if pool is None else pool
        self._resident = resident
        self._clock = clock
        self._places: OrderedDict[str, _Place] = OrderedDict()  # the least recently used first
        self._turn = asyncio.Lock()
        self._settling: asyncio.Task[None] | None = None

    def add(self, model: Loadable) -> None:
        """Know a model, which is not loaded yet; one that was given loaded stays so."""
        self._places[model.name] = place = _Place(model)
        place.translator = model.translator if model.kept else None

    def state(self, name: str) -> str:
        """Return "loaded", "loading", "unloaded" or "failed"."""
        return self._places[name].state

    def loads(self, name: str) -> int:
        """Return how often a model was loaded."""
        return self._places[name].loads

    def held(self, name: str) -> Any:
        """Return a translator that somebody uses; None if all have gone."""
        return self._places[name].translator

    @asynccontextmanager
    async def using(self, name: str) -> AsyncIterator[Any]:
        """Keep a model in memory inside the block, loading it first if need be."""
        place = self._places[name]
        while place.leaving:
            await place.gone.wait()
        self._places.move_to_end(name)
        place.users += 1  # also those who wait for it: once loaded, it stays until they are done
        place.left.clear()
        try:
            yield place.translator or await self._loaded(place)
        finally:
            place.users -= 1
            if not place.users:
                place.left.set()
            self._settle()

    async def stop(self) -> None:
        """Wait for what is being loaded, and end the threads."""
        tasks = [place.loading for place in self._places.values()] + [self._settling]
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)
        await asyncio.to_thread(self.pool.shutdown)

    async def _loaded(self, place: _Place) -> Any:
        """Return a model when it is loaded; a request that gives up does not stop the loading."""
        if place.failed is not None and self._clock() - place.failed < FAILED_SECONDS:
            raise _unavailable(place)
        if place.loading is None:
            place.loading = asyncio.create_task(self._load(place))
            place.loading.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(place.loading)

    async def _load(self, place: _Place) -> Any:
        try:
            async with self._turn:
                await self._make_room(place.model.bytes_needed, keep=place)
                loop = asyncio.get_running_loop()
                loaded = await loop.run_in_executor(self.pool, place.model.load)
                place.translator, place.failed = loaded, None
                place.loads += 1
                await self._make_room(0, keep=place)  # it may have taken more than was expected
                return loaded
        except Exception as error:
            place.failed = self._clock()
            _log_problem(place, error)
            raise _unavailable(place) from None
        finally:
            place.loading = None

    def _settle(self) -> None:
        """Unload models in the background if a search has taken the memory beyond the limit."""
        if self._settling is None and self._over(0):
            self._settling = asyncio.create_task(self._settled())

    async def _settled(self) -> None:
        try:
            async with self._turn:
                await self._make_room(0, keep=next(reversed(self._places.values())))
        finally:
            self._settling = None

    async def _make_room(self, needed: int, *, keep: _Place) -> None:
        """Unload the least recently used models until there is room for so many bytes."""
        loop = asyncio.get_running_loop()
        if self._over(needed):
            await loop.run_in_executor(self.pool, return_memory)
        while self._over(needed) and (place := self._least_used(keep)) is not None:
            await self._unload(place)
            await loop.run_in_executor(self.pool, return_memory)

    async def _unload(self, place: _Place) -> None:
        """Unload a model when its last user has gone; it takes no new ones until then."""
        place.leaving = True
        place.gone.clear()
        try:
            while place.users:
                await place.left.wait()
            place.translator = None
        finally:
            place.leaving = False
            place.gone.set()

    def _least_used(self, keep: _Place) -> _Place | None:
        """Return the model to unload next: one that nobody uses, if there is one."""
        loaded = [
            place
            for place in self._places.values()
            if place.translator is not None and place is not keep and not place.model.kept
        ]
        return next((place for place in loaded if not place.users), next(iter(loaded), None))

    def _over(self, needed: int) -> bool:
        """Return whether so many bytes more would be beyond the limit."""
        if self.limit is None:
            return False
        taken = self._resident()
        if taken is None:  # not Linux: what the loaded models are expected to take
            loaded = [place for place in self._places.values() if place.translator is not None]
            taken = sum(place.model.bytes_needed for place in loaded)
        return taken + needed > self.limit


def _unavailable(place: _Place) -> ApiError:
    return ApiError(
        503, f"The model {place.model.name} cannot be loaded; the log of the server says why."
    )


def _log_problem(place: _Place, error: Exception) -> None:
    """Log why a model could not be loaded: a mistake about its files, or where a bug is."""
    if isinstance(error, RegardError | OSError):
        LOG.log(logging.ERROR, "The model %s cannot be loaded: %s", place.model.name, error)
    else:
        log_failure(error)
