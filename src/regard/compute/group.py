"""Processes that compute together, by torch.distributed: sums, orders, and who is still there.

The process of rank 0 leads: it says what is to be done next, and the others do the same. Between
orders they wait without using a core. Whoever ends or stands still is noticed within a minute.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.base.errors import NonFiniteError, RegardError, RunError, SettingsError
from regard.compute.device import on_host

Item = TypeVar("Item")

# Seconds between signs of life, after which a process that gives none counts as lost, and between
# two looks at that while waiting.
BEAT, LOST_AFTER, LOOK = 3.0, 40.0, 1.0
# A wait ends by what the beats say, and not because an update takes long on a slow machine.
NO_LIMIT = timedelta(days=30)
ORDER_BYTES = 1_000  # a longer one takes a second message
BUCKET = 8_000_000  # numbers that are summed at once


class GroupLostError(RunError):
    """A training of several processes, of which one has ended or stands still."""


class Group:
    """The processes of a training and this one's place among them; by default it is alone."""

    def __init__(self, rank: int = 0, size: int = 1, *, beats: Any = None, launched: bool = False):
        self.rank, self.size = rank, size
        self.launched = launched
        """Whether another program (torchrun) has started the processes."""
        self.together = False
        """Whether all processes run the same code now, so that work can be shared out."""
        self.when_prepared: Callable[[], None] | None = None
        """What the leader does once before the first training."""
        self._store = beats
        self._lost: int | None = None
        self._broken = False
        self._over = threading.Event()
        if beats is not None:
            threading.Thread(target=self._beat, args=(beats,), daemon=True).start()

    @property
    def leads(self) -> bool:
        """Whether this process decides, writes and shows."""
        return self.rank == 0

    @property
    def is_lost(self) -> bool:
        """Whether a process of the group has ended, or stands still."""
        return self._broken

    @property
    def leader_has_left(self) -> bool:
        """Whether the leader has closed the group, and not been killed."""
        try:
            return self._store is not None and bool(self._store.check(["left"]))
        except RuntimeError:  # the store has ended with it
            return False

    def tell(self, order: Mapping[str, Any]) -> None:
        """Tell all others what to do next."""
        self._broadcast_bytes(json.dumps(order).encode())

    def hear(self) -> dict[str, Any]:
        """Wait for the next order."""
        found: dict[str, Any] = json.loads(self._broadcast_bytes(None))
        return found

    def let_the_leader_end(self) -> None:
        """Wait until the leader has left, so that what it says is not that this one has."""
        if not self.leads:
            with suppress(GroupLostError):
                self.hear()

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, many small ones at once."""
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.detach().reshape(-1) for tensor in bucket])
            self._all_reduce(flat)
            parts = torch.split(flat, [tensor.numel() for tensor in bucket])
            for tensor, part in zip(bucket, parts, strict=True):
                tensor.detach().copy_(part.view_as(tensor))

    def send_from_leader(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by that of the leader."""
        from torch import distributed

        for tensor in tensors:
            whole = tensor.detach().contiguous()
            self._wait(distributed.broadcast(whole, 0, async_op=True), whole)
            tensor.detach().copy_(whole)

    def gather(self, value: Any) -> list[Any]:
        """Return the values (of JSON) of all processes, by rank."""
        from torch import distributed

        if self.size == 1:
            return [value]
        written = json.dumps(value).encode()
        lengths = torch.zeros(self.size, dtype=torch.int64)
        lengths[self.rank] = len(written)
        self._all_reduce(lengths)
        own = torch.zeros(int(lengths.max()), dtype=torch.uint8)
        own[: len(written)] = torch.frombuffer(bytearray(written), dtype=torch.uint8)
        every = [torch.empty_like(own) for _ in range(self.size)]
        self._wait(distributed.all_gather(every, own, async_op=True), own)
        return [
            json.loads(bytes(one[:length].tolist()))
            for one, length in zip(every, lengths.tolist(), strict=True)
        ]

    def close(self) -> None:
        """Leave the group."""
        from torch import distributed

        self._over.set()
        if self.launched:
            _enter(_ALONE)
        if self.launched and self.leads:
            with suppress(RuntimeError):
                self._store.set("left", "1")
        if self.size == 1 or not distributed.is_initialized():
            return
        if self._lost is None or not self.launched:
            distributed.destroy_process_group()
        else:  # a thread waits for a process that stands still, and would hold up the end
            _exit_at_once_at_the_end()

    def _all_reduce(self, tensor: Tensor) -> None:
        from torch import distributed

        self._wait(distributed.all_reduce(tensor, async_op=True), tensor)

    def _broadcast_bytes(self, written: bytes | None) -> bytes:
        """Send bytes from the leader, who has them, to all; return them."""
        from torch import distributed

        room = torch.zeros(8 + ORDER_BYTES, dtype=torch.uint8)
        if written is not None:
            head = len(written).to_bytes(8, "little") + written[:ORDER_BYTES]
            room[: len(head)] = torch.frombuffer(bytearray(head), dtype=torch.uint8)
        self._wait(distributed.broadcast(room, 0, async_op=True), room)
        found = bytes(room.tolist())
        length = int.from_bytes(found[:8], "little")
        if length <= ORDER_BYTES:
            return found[8 : 8 + length]
        rest = torch.empty(length, dtype=torch.uint8)
        if written is not None:
            rest = torch.frombuffer(bytearray(written), dtype=torch.uint8)
        self._wait(distributed.broadcast(rest, 0, async_op=True), rest)
        return rest.numpy().tobytes()

    def _wait(self, work: Any, tensor: Tensor) -> None:
        """Wait until an exchange has ended, or a process is lost."""
        if not on_host(tensor):  # torch's own watchdog looks after these
            work.wait()
            return
        while True:
            try:
                work.wait(timedelta(seconds=LOOK))
                return
            except RuntimeError:
                if work.is_completed():  # a connection is gone
                    raise self._error() from None
                if self._lost is not None:
                    raise self._error() from None

    def _error(self) -> GroupLostError:
        self._broken = True
        who = "another process" if self._lost is None else f"process {self._lost}"
        how = "has ended" if self._lost is None else "gives no sign of life"
        return GroupLostError(
            f"Of the {self.size} processes of the training, {who} {how}, perhaps for lack of "
            "memory. Go on with `regard train --resume`; without torchrun, --set "
            "training.processes=1 does without other processes."
        )

    def _beat(self, store: Any) -> None:
        """Give signs of life, and look for those of the leader, or as the leader of all."""
        others = [0] if self.rank else list(range(1, self.size))
        seen = dict.fromkeys(others, (b"", time.monotonic()))
        count = 0
        while not self._over.wait(BEAT):
            count += 1
            try:
                store.set(f"alive/{self.rank}", str(count))
                for other in others:
                    sign = store.get(f"alive/{other}") if store.check([f"alive/{other}"]) else b""
                    before, since = seen[other]
                    if sign != before:
                        seen[other] = (sign, time.monotonic())
                    elif time.monotonic() - since > LOST_AFTER:
                        self._lost = other
                        return
            except RuntimeError:  # the store has ended with the leader, as every exchange says
                return


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Yield neighbours of one type and device, with at most `BUCKET` numbers if there are more."""
    bucket: list[Tensor] = []
    numbers = 0
    for tensor in tensors:
        full = numbers + tensor.numel() > BUCKET
        if bucket and (
            full or (tensor.dtype, tensor.device) != (bucket[0].dtype, bucket[0].device)
        ):
            yield bucket
            bucket, numbers = [], 0
        bucket.append(tensor)
        numbers += tensor.numel()
    if bucket:
        yield bucket


_ALONE = Group()
_current = _ALONE


def current_group() -> Group:
    """Return the group that this process computes in."""
    return _current


def _enter(group: Group) -> None:
    global _current
    _current = group


def shared_out(items: Sequence[Item], work: Callable[[Sequence[Item]], Sequence[Any]]) -> list[Any]:
    """Return what the work makes of each item (values of JSON), in their order.

    The processes of a group that are `together` share the items; a user's error in one of them is
    raised in all.
    """
    group = _current
    if not group.together:
        return list(work(items))
    error, own = None, list[Any]()
    try:
        own = list(work(items[group.rank :: group.size])) if group.rank < len(items) else []
    except RegardError as raised:
        error = [isinstance(raised, NonFiniteError), str(raised)]
    parts = group.gather([error, own])
    for problem, _ in parts:
        if problem is not None:
            raise (NonFiniteError if problem[0] else RunError)(problem[1])
    found: list[Any] = [None] * len(items)
    for rank, (_, part) in enumerate(parts):
        found[rank :: group.size] = part
    return found


@contextmanager
def computing_together(group: Group) -> Iterator[None]:
    """Let all processes of the group run the block, in which work is shared out."""
    before, group.together = group.together, group.size > 1
    try:
        yield
    finally:
        group.together = before


@contextmanager
def local_group(size: int, follow: Callable[[Group], None]) -> Iterator[Group]:
    """Yield a group of this process, which leads, and of copies of it that run `follow`.

    The copies know all that this process knows now, without holding it twice.
    """
    from regard.compute.processes import ForkedProcess

    if _current.size > 1 or size == 1:
        yield _current
        return
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    def run(port: int, rank: int) -> None:
        store = TCPStore("127.0.0.1", port, size, False, timeout=NO_LIMIT)
        group = _connected(store, rank, size)
        with suppress(RegardError):  # the leader says what has happened
            follow(group)

    workers = [ForkedProcess(run, rank) for rank in range(1, size)]
    group = _ALONE
    try:
        # Only now, so that no copy keeps an end of a connection open.
        store = TCPStore("127.0.0.1", 0, size, True, timeout=NO_LIMIT, wait_for_workers=False)
        for worker in workers:
            worker.begin(store.port)
        group = _connected(store, 0, size)
        yield group
    finally:
        _enter(_ALONE)
        for worker in workers:
            worker.stop()
        group.close()


def _connected(store: Any, rank: int, size: int, *, launched: bool = False) -> Group:
    """Return the group of processes that meet at a store."""
    from torch import distributed
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]

    # A store of torchrun outlasts a restart, and still holds what was written before.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if not distributed.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        distributed.init_process_group(
            backend,
            store=PrefixStore(f"group-{attempt}", store),
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=LOST_AFTER),
        )
        # From here on, beats say who is lost.
        distributed.distributed_c10d._set_pg_timeout(NO_LIMIT)
    beats = PrefixStore(f"beats-{attempt}", store.clone())
    group = Group(rank, size, beats=beats, launched=launched)
    _enter(group)
    return group


def launched_size() -> int:
    """Return how many processes another program (torchrun, SLURM) has started with this one."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def join_launched() -> Group:
    """Return the group of the processes that torchrun has started; it is joined once."""
    if _current.size > 1 or launched_size() == 1:
        return _current
    from torch.distributed import DistNetworkError
    from torch.distributed.rendezvous import rendezvous

    place = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
    try:
        store, rank, size = next(rendezvous("env://", timeout=timedelta(seconds=LOST_AFTER)))
        store.set_timeout(NO_LIMIT)
        return _connected(store, rank, size, launched=True)
    except (DistNetworkError, ValueError, RuntimeError) as error:
        if "EADDRINUSE" in str(error):
            raise SettingsError(
                f"The processes cannot meet at {place}: the port is in use. Choose another one "
                "with torchrun --master-port, or end the training that uses it."
            ) from None
        raise SettingsError(
            f"The processes cannot meet at {place}: {str(error).splitlines()[0][:200]}. Give every "
            "process the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, as torchrun does."
        ) from None


def _exit_at_once_at_the_end() -> None:
    """Let this program end without waiting for its threads."""
    import atexit

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(2)

    atexit.register(leave)
