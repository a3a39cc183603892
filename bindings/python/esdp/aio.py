"""esdp for asyncio: operations are awaited, and no thread is needed.

    async with esdp.aio.Context() as context:
        region = context.register(bytearray(1 << 20))
        async with await context.connect("127.0.0.1:7471") as socket:
            await socket.send(region[:4096])
            count = await socket.recv(region)

The loop watches the event queue's descriptor and takes completions in batches. For an operation nothing is made but the
future that is awaited. Memory is lent from the call until the await has ended.

Cancelling an await asks the operation to end, and the await ends after it has: with asyncio.CancelledError, whose
args[0] is the operation's last Event. So memory is never reused too early, and Event.bytes tells what moved before.

One Context belongs to one loop and its thread.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import weakref
from types import TracebackType
from typing import Any, Literal, Optional, Sequence, Tuple, Type, Union

from esdp import _core
from esdp._errors import Error, ShutDownError, WindowFullError

Address = Union[str, Tuple[str, int]]
_Path = Literal["threshold", "copy", "zero_copy"]
_CompleteAt = Literal["reusable", "delivered"]
_Exposure = Literal["per_operation", "region_key", "none"]
_Mode = Literal["graceful", "abort"]

_QUEUE_DEPTH = 1024  # it grows when there is more outstanding
_COPIED_AT_ONCE = 64 * 1024  # of memory that is not registered
_VIRTUAL_STEP = 0.01  # seconds of a simulated world, moved at once
_REST = 0.001  # seconds of the real one between two looks, where nothing tells of a change
_GRACE = 10.0  # seconds that connections have to end

# The queues of each loop: who looks for the operation behind a future asks them.
_queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakSet[_core.EventQueue]]
_queues = weakref.WeakKeyDictionary()


class _Operation(asyncio.Future):  # type: ignore[type-arg]
    """What is awaited. Its cancel only asks: the terminal event ends it."""

    def cancel(self, msg: Optional[Any] = None) -> bool:
        if self.done():
            return False
        queues = _queues.get(self.get_loop(), ())
        return any(queue._cancel_future(self) for queue in queues) or super().cancel(msg)

    def _end_cancelled(self, event: _core.Event) -> None:
        super().cancel(event)


class Context:
    """An esdp.Context with one event queue, served by the running loop. The options are those of esdp.Context."""

    def __init__(self, **options: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = _core.Context(**options)
        self._queue = self._context.queue(depth=_QUEUE_DEPTH)
        self._queue._bind_to_loop(self._loop, functools.partial(_Operation, loop=self._loop))
        _queues.setdefault(self._loop, weakref.WeakSet()).add(self._queue)
        self._fd = self._queue.fileno()
        self._loop.add_reader(self._fd, self._queue._deliver)
        if self._context.virtual_time:
            self._loop.call_soon(_move_world, weakref.ref(self))

    @property
    def core(self) -> _core.Context:
        """The esdp.Context: stats, now, allocate, ..."""
        return self._context

    def register(self, memory: Any, writable: Optional[bool] = None, exposure: _Exposure = "per_operation") -> _core.Region:
        """esdp.Context.register."""
        return self._context.register(memory, writable, exposure)

    def allocate(self, bytes: int, exposure: _Exposure = "per_operation") -> _core.Region:
        """esdp.Context.allocate."""
        return self._context.allocate(bytes, exposure)

    async def connect(self, address: Address, *, timeout: Optional[float] = None, **options: Any) -> Socket:
        """A connection. The options are those of esdp.Context.socket."""
        socket = self._context.socket(_family_of(address), **options)
        try:
            await _future(socket.connect(address, self._queue, timeout=timeout))
        except BaseException:
            socket.close(mode="abort")
            raise
        return Socket(self, socket)

    def listen(self, address: Address, backlog: int = 128, **options: Any) -> Listener:
        """Begins to take connections. Accepted sockets inherit the options."""
        socket = self._context.socket(_family_of(address), **options)
        try:
            socket.bind(address)
            socket.listen(backlog)
        except BaseException:
            socket.close(mode="abort")
            raise
        return Listener(self, socket)

    def close(self, timeout: float = 0) -> None:
        """Ends everything, in at most `timeout` seconds during which the loop stands. Operations end with an error;
        those of a loop that has been closed are dropped. Sockets that must drain are closed before, by `await`."""
        if self._context.closed:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        try:
            self._context.close(timeout)
        except TimeoutError:
            if timeout > 0:
                raise

    @property
    def closed(self) -> bool:
        return self._context.closed

    async def __aenter__(self) -> Context:
        return self

    async def __aexit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        await self.aclose(_GRACE if type is None else 0)

    async def aclose(self, grace: float = _GRACE) -> None:
        """Awaits the end of connections that were closed gracefully, for `grace` seconds at most, and closes."""
        end = self._loop.time() + grace
        while not self.closed and self._context.stats().sockets > 0 and self._loop.time() < end:
            await asyncio.sleep(_REST)
        self.close()
        await asyncio.sleep(0)  # who was told of the end by the loop's next turn has heard of it


def _move_world(reference: weakref.ref[Context]) -> None:
    """A simulated world moves only when it is told to."""
    context = reference()
    if context is None or context.closed:
        return
    moved = context._context.progress(_VIRTUAL_STEP)
    if context._queue._deliver() or moved:
        context._loop.call_soon(_move_world, reference)
    else:
        context._loop.call_later(_REST, _move_world, reference)


class Socket:
    """One end of a stream. What `send`, `recv` and the like return is a future: it is posted already when it is there,
    so that several can be outstanding; awaiting it gives the number of bytes."""

    __slots__ = ("_context", "_socket", "_queue", "__weakref__")

    def __init__(self, context: Context, socket: _core.Socket) -> None:
        self._context = context
        self._socket = socket
        self._queue = context._queue

    @property
    def core(self) -> _core.Socket:
        """The esdp.Socket: stats, options, local, peer, ..."""
        return self._socket

    @property
    def local(self) -> Tuple[str, int]:
        return self._socket.local

    @property
    def peer(self) -> Tuple[str, int]:
        return self._socket.peer

    def send(
        self,
        data: Any,
        *,
        urgent: bool = False,
        timeout: Optional[float] = None,
        complete_at: _CompleteAt = "reusable",
        path: _Path = "threshold",
    ) -> asyncio.Future[int]:
        """Sends a Region or a Slice from where it lies; other memory is copied at once (WindowFullError: no room; see
        sendall)."""
        posted: Any = self._socket.send(
            data, self._queue, None, urgent=urgent, timeout=timeout, complete_at=complete_at, path=path
        )
        return posted  # type: ignore[no-any-return]

    def recv(
        self, target: Any, *, wait_all: bool = False, timeout: Optional[float] = None, path: _Path = "threshold"
    ) -> asyncio.Future[int]:
        """Receives 1 byte or more, or with wait_all until the target is full. 0: the end of the stream."""
        posted: Any = self._socket.recv(target, self._queue, None, wait_all=wait_all, timeout=timeout, path=path)
        return posted  # type: ignore[no-any-return]

    def sendv(
        self, data: Sequence[Union[_core.Region, _core.Slice]], *, timeout: Optional[float] = None
    ) -> asyncio.Future[int]:
        return _future(self._socket.sendv(data, self._queue, timeout=timeout))

    def recvv(
        self,
        targets: Sequence[Union[_core.Region, _core.Slice]],
        *,
        wait_all: bool = False,
        timeout: Optional[float] = None,
    ) -> asyncio.Future[int]:
        return _future(self._socket.recvv(targets, self._queue, wait_all=wait_all, timeout=timeout))

    async def sendall(self, data: Any) -> None:
        """Sends all of it, registered or not; waits for room where `send` would raise."""
        if isinstance(data, (_core.Region, _core.Slice)):
            await self.send(data)
            return
        view = memoryview(data).cast("B")
        sent: collections.deque[asyncio.Future[int]] = collections.deque()
        while len(view) > 0:
            try:
                sent.append(self.send(view[:_COPIED_AT_ONCE]))
                view = view[_COPIED_AT_ONCE:]
            except WindowFullError:
                await (sent.popleft() if sent else asyncio.sleep(_REST))
        for future in sent:
            await future

    def await_urgent(self, *, timeout: Optional[float] = None) -> asyncio.Future[_core.Event]:
        """The event of an urgent byte that the peer has announced."""
        return _future(self._socket.await_urgent(self._queue, timeout=timeout))

    def suspend(self, *, timeout: Optional[float] = None) -> asyncio.Future[None]:
        """Moves the connection to a new queue pair; done when data flows again."""
        return _future(self._socket.suspend(self._queue, timeout=timeout))

    def shutdown(self) -> asyncio.Future[None]:
        """Ends the sending direction, after all that was posted."""
        return _future(self._socket.shutdown(self._queue))

    async def close(self, mode: _Mode = "graceful", *, timeout: Optional[float] = None) -> None:
        """Ends the connection. 'graceful' awaits that all was sent and the peer told so, for `timeout` seconds at most;
        the rest goes on by itself. 'abort' drops what was not sent. Nothing when it has ended."""
        if self._socket.closed or self._context.closed:
            return
        try:
            if mode == "graceful":
                await _future(self._socket.shutdown(self._queue, timeout=timeout))
        except ShutDownError:
            pass  # it was told before
        except BaseException as error:
            self._socket.close(mode="abort")
            if not isinstance(error, Error):
                raise
        self._socket.close(mode=mode)

    async def __aenter__(self) -> Socket:
        return self

    async def __aexit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        await self.close("graceful" if type is None else "abort")


class Listener:
    """Takes connections: `async for socket in listener`, until it is closed."""

    def __init__(self, context: Context, socket: _core.Socket) -> None:
        self._context = context
        self._socket = socket
        self._ready: collections.deque[Socket] = collections.deque()

    @property
    def address(self) -> Tuple[str, int]:
        return self._socket.local

    async def accept(self) -> Socket:
        """The next connection. One that came while the await was cancelled is the next one's."""
        if self._ready:
            return self._ready.popleft()
        try:
            event = await _future(self._socket.accept(self._context._queue))
        except asyncio.CancelledError as error:
            event = error.args[0] if error.args else None
            if isinstance(event, _core.Event) and event.has_connection:
                self._ready.append(self._take(event))
            raise
        return self._take(event)

    def _take(self, event: _core.Event) -> Socket:
        return Socket(self._context, self._context._context.take_accepted(event))

    def close(self) -> None:
        """Takes no more; who waits for a connection is told. Connections that were taken go on."""
        for socket in self._ready:
            socket.core.close(mode="abort")
        self._ready.clear()
        self._socket.close(mode="abort")

    def __aiter__(self) -> Listener:
        return self

    async def __anext__(self) -> Socket:
        try:
            return await self.accept()
        except Error:
            if self._socket.closed or self._context.closed:
                raise StopAsyncIteration from None
            raise

    async def __aenter__(self) -> Listener:
        return self

    async def __aexit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()


class connect:
    """One connection with a Context of its own: `async with esdp.aio.connect(address) as socket`. The options are those
    of esdp.Context."""

    def __init__(self, address: Address, *, timeout: Optional[float] = None, **options: Any) -> None:
        self._address = address
        self._timeout = timeout
        self._options = options

    async def __aenter__(self) -> Socket:
        self._context = Context(**self._options)
        try:
            self._socket = await self._context.connect(self._address, timeout=self._timeout)
        except BaseException:
            self._context.close()
            raise
        return self._socket

    async def __aexit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        await self._socket.close("graceful" if type is None else "abort")
        await self._context.aclose(_GRACE if type is None else 0)




def _future(posted: Any) -> asyncio.Future[Any]:
    """A queue that is bound to a loop makes futures; the types of the module speak of names of operations."""
    return posted  # type: ignore[no-any-return]


def _family_of(address: Address) -> Literal["ipv4", "ipv6"]:
    host = address if isinstance(address, str) else address[0]
    return "ipv6" if host.startswith("[") or host.count(":") > 1 else "ipv4"
