"""Work done in advance by threads, for work that mostly waits for another library."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def ahead(
    work: Callable[[Item], Result], items: Iterable[Item], *, at_once: int
) -> Iterator[Result]:
    """Yield what the work makes of each item, in order, while threads are at the next ones.

    So many items are worked on at once, and one more waits. What fails is raised in its turn. With
    one at once there are no threads.
    """
    if at_once == 1:
        for item in items:
            yield work(item)
        return
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for item in items:
                begun.append(pool.submit(work, item))
                if len(begun) > at_once:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.cancel()
