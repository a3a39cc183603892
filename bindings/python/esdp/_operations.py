"""The futures of esdp.aio: how an operation ends that is cancelled, or late, and where its bytes are then.

Future.cancel asks the library to take the operation back. What is not over after a grace has begun, and the peer does not
go on: then its connection is aborted, so that the await ends whatever the peer does.

A receive that is cancelled may have taken bytes. They are not lost: its future gives their number, or, where the task that
awaits it is cancelled too and has to hear of that, the socket's next receive gives them.
"""

from __future__ import annotations

import asyncio
import bisect
import errno
import operator
import weakref
from typing import Any, Callable, Generator, List, Optional, Sequence, Tuple, Union

from esdp import _core
from esdp._errors import ErrorKind, make_error

# The queues of each loop: who looks for the operation behind a future asks them.
queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakSet[_core.EventQueue]]
queues = weakref.WeakKeyDictionary()


# Where bytes stand in the stream: the turn of the receive that took them, and how many of its bytes come before.
Place = Tuple[int, int]


class Unread:
    """Bytes that receives took and did not give, in the stream's order: the next receive gives them."""

    __slots__ = ("_parts", "_turn")

    def __init__(self) -> None:
        self._parts: List[Tuple[Place, Union[bytes, Operation]]] = []
        self._turn = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def next_place(self) -> Place:
        """Of a receive that is posted now."""
        self._turn += 1
        return (self._turn, 0)

    def give_back(self, place: Place, part: Union[bytes, Operation]) -> None:
        """Bytes, or an operation whose bytes belong here unless somebody asks it for them first."""
        bisect.insort(self._parts, (place, part), key=operator.itemgetter(0))

    def move_to(self, target: memoryview) -> Tuple[int, Optional[Place]]:
        """How many bytes there were, and where the first one stood."""
        count, first = 0, None
        while self._parts and count < len(target):
            place, part = self._parts.pop(0)
            data = part.take_back() if isinstance(part, Operation) else part
            if not data:
                continue
            taken = min(len(data), len(target) - count)
            target[count : count + taken] = data[:taken]
            count, first = count + taken, first or place
            if taken < len(data):
                self._parts.insert(0, ((place[0], place[1] + taken), data[taken:]))
        return count, first


class Operation(asyncio.Future):  # type: ignore[type-arg]
    """What is awaited. Its cancel only asks: the terminal event ends it."""

    _socket: Optional[_core.Socket] = None  # is aborted where the operation does not end
    _grace = 0.0
    _timer: Optional[asyncio.TimerHandle] = None
    _late = False
    _receives: Optional[Tuple[Sequence[Any], Unread]] = None  # the memory of a receive, and where its bytes go
    _place: Place = (0, 0)
    _taken: Optional[bytes] = None  # a receive that was cancelled had succeeded
    _claimed = False  # the bytes of _taken are whoever's has the number
    _given_back = False
    _is_heard = False  # by a callback, unless the loop ends before its turn

    def set_exception(self, exception: Any) -> None:
        super().set_exception(exception)
        if self._is_heard:
            hear(self)

    # --- how long it may take ---

    def abort_with(self, socket: _core.Socket, grace: float, timeout: Optional[float]) -> None:
        """The connection is aborted `grace` seconds after a cancel, or after the timeout, that did not end it."""
        self._socket, self._grace = socket, grace
        if timeout is not None:
            self._abort_after(timeout + grace, True)

    def cancel(self, msg: Optional[Any] = None) -> bool:
        if self.done():
            return False
        if not any([queue._cancel_future(self) for queue in queues.get(self.get_loop(), ())]):
            return super().cancel(msg)
        if self._socket is not None:
            self._abort_after(self._grace, False)
        return True

    def _abort_after(self, seconds: float, late: bool) -> None:
        if self._timer is None:
            self.add_done_callback(_stop_timer)
        else:
            self._timer.cancel()
        self._timer = self.get_loop().call_later(seconds, self._abort, late)

    def _abort(self, late: bool) -> None:
        if self._socket is not None and not self.done():
            self._late = late
            self._socket.close(mode="abort")

    # --- the terminal event, where it is not plain success ---

    def _end_cancelled(self, event: _core.Event) -> None:
        if self._receives is not None and self._keep(event.bytes, event.ok):
            self.set_result(event.bytes)
        else:
            super().cancel(event)

    def _end_failed(self, event: _core.Event) -> None:
        if self._receives is not None:
            self._keep(event.bytes, False)
        if self._late:
            self.set_exception(make_error(ErrorKind.DEADLINE_EXCEEDED, errno.ETIMEDOUT, _LATE))
        else:
            self.set_exception(event.error or OSError())

    def _keep(self, count: int, succeeded: bool) -> bool:
        assert self._receives is not None
        targets, unread = self._receives
        taken = first_bytes(targets, count)
        if succeeded:
            self._taken = taken
        if count > 0:
            unread.give_back(self._place, self if succeeded else taken)
        return succeeded

    # --- whose the bytes are ---

    def take_back(self) -> bytes:
        """What it received, for the receive after it, where nobody has asked for its result."""
        if self._claimed or self._taken is None:
            return b""
        self._given_back = True
        return self._taken

    def result(self) -> Any:
        if self._taken is not None:
            self._claim()
        return super().result()

    def _claim(self) -> None:
        if self._given_back:
            raise asyncio.CancelledError("the bytes were given by a later receive")
        self._claimed = True

    def __await__(self) -> Generator[Any, None, Any]:
        return super().__await__() if self._receives is None else self._await_bytes()

    __iter__ = __await__

    def _await_bytes(self) -> Generator[Any, None, Any]:
        task = asyncio.current_task()
        cancels = task.cancelling() if task is not None else 0
        try:
            count = yield from super().__await__()
        except asyncio.CancelledError:
            if self.done() and not self.cancelled() and self.exception() is None:
                self._leave_unheard()
            raise
        if self._taken is not None:
            if task is not None and task.cancelling() > cancels:
                self._leave_unheard()
                raise asyncio.CancelledError
            self._claim()
        return count

    def _leave_unheard(self) -> None:
        """It had succeeded, and the task that awaits it is cancelled."""
        if self._taken is None:
            self._keep(super().result(), True)
        self._claimed = False  # asyncio's task asked for the result, to wake up


class Later(Operation):
    """A receive that a task does. `receives`: the memory, and where its bytes go; none for a file, which keeps them."""

    def follow(self, task: asyncio.Task[int], receives: Optional[Tuple[Sequence[Any], Unread]]) -> None:
        self._receives = receives
        self._task, self._asked = task, False
        task.add_done_callback(self._end)

    def cancel(self, msg: Optional[Any] = None) -> bool:
        if self.done():
            return False
        self._asked = True
        self._task.cancel()
        return True

    def _end(self, task: asyncio.Task[int]) -> None:
        if task.cancelled():
            asyncio.Future.cancel(self)
            return
        error = task.exception()
        if error is not None:
            self.set_exception(error)
            return
        if self._asked and self._receives is not None:
            self._keep(task.result(), True)
        self.set_result(task.result())


_LATE = "its deadline came, and it did not end: the connection was aborted; on_cancel='wait' waits for the peer"


def _stop_timer(operation: Any) -> None:
    operation._timer.cancel()


def first_bytes(targets: Sequence[Any], count: int) -> bytes:
    taken = bytearray()
    for target in targets:
        if len(taken) == count:
            break
        taken += memoryview(target).cast("B")[: count - len(taken)]
    return bytes(taken)


def hear(future: asyncio.Future[Any]) -> Optional[BaseException]:
    """To be asked in any case: asyncio complains of an error that nobody wanted to know."""
    return None if future.cancelled() else future.exception()


def tell(future: asyncio.Future[Any], callback: Callable[[asyncio.Future[Any]], object]) -> None:
    """`callback` hears of it. Where the loop ends before its turn asyncio complains of nothing."""
    if isinstance(future, Operation):
        future._is_heard = True
    if future.done():
        hear(future)
    future.add_done_callback(callback)


async def result_of(future: asyncio.Future[Any]) -> Any:
    """Of an operation that has no memory: who awaits it does not wait for its end when cancelled."""
    try:
        await asyncio.wait([future])
    except asyncio.CancelledError:
        future.add_done_callback(hear)
        future.cancel()
        raise
    return future.result()

