"""esdp for asyncio: operations are awaited, and no thread is needed.

    async with esdp.aio.Context() as context:
        region = context.register(bytearray(1 << 20))
        async with await context.connect("127.0.0.1:7471") as socket:
            await socket.send(region[:4096])
            count = await socket.recv(region)

The loop watches the event queue's descriptor and takes completions in batches. For an operation nothing is made but the
future that is awaited. Memory is lent from the call until the await has ended.

Cancelling an await, or a timeout, asks the operation to end, and the await ends after it has, so that memory is never
reused too early: with asyncio.CancelledError, whose args[0] is the operation's last Event; its `bytes` tell what moved
before. What has not begun is taken back. What has begun and has not ended `abort_after` seconds later (1, an argument of
Context), because the peer does not go on, ends with its connection, which is aborted. on_cancel="wait" waits for the
peer instead.

A receive loses no byte. Cancelled when it had succeeded already, its future gives their number; where the task that
awaits it is cancelled, the socket's next receive gives them. So does the one after a receive that failed with a part.

One Context belongs to one loop and its thread.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import ipaddress
import socket as _socket
import weakref
from types import TracebackType
from typing import Any, Literal, Optional, Sequence, Tuple, Type, Union

from esdp import _core
from esdp._errors import Error, ShutDownError, WindowFullError
from esdp._operations import Operation, Unread, hear, queues, result_of
from esdp._transfers import receive_all, receive_file_later, receive_later, send_all

Address = Union[str, Tuple[str, int]]
_Path = Literal["threshold", "copy", "zero_copy"]
_CompleteAt = Literal["reusable", "delivered"]
_Exposure = Literal["per_operation", "region_key", "none"]
_Mode = Literal["graceful", "abort"]
_OnCancel = Literal["abort", "wait"]
_Registered = Union[_core.Region, _core.Slice]
_FileRange = Tuple[Any, int, int]  # a file, as a number or an object with fileno(), an offset and a length

_QUEUE_DEPTH = 1024  # it grows when there is more outstanding
_VIRTUAL_STEP = 0.01  # seconds of a simulated world, moved at once
_REST = 0.001  # seconds of the real one between two looks, where nothing tells of a change
_GRACE = 10.0  # seconds that connections have to end
_ABORT_AFTER = 1.0  # seconds that an operation has to end after it was asked to


class Context:
    """An esdp.Context with one event queue, served by the running loop. The options are those of esdp.Context.
    `abort_after`: seconds that an operation which has begun has to end in when it is cancelled or late."""

    def __init__(self, *, abort_after: float = _ABORT_AFTER, **options: Any) -> None:
        self._abort_after = abort_after
        self._ends: weakref.WeakSet[Union[Socket, Listener]] = weakref.WeakSet()
        self._loop = asyncio.get_running_loop()
        self._context = _core.Context(**options)
        self._queue = self._context.queue(depth=_QUEUE_DEPTH)
        self._queue._bind_to_loop(self._loop, functools.partial(Operation, loop=self._loop))
        queues.setdefault(self._loop, weakref.WeakSet()).add(self._queue)
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
        """A connection. A host that is a name is looked up, and each address tried in turn. The options are those of
        esdp.Context.socket. Cancelled, it ends at once."""
        return await self.connect_any(await addresses_of(address), timeout, **options)

    async def connect_any(self, addresses: Sequence[Address], timeout: Optional[float], **options: Any) -> Socket:
        """`connect` to the first address that answers; the error is that of the first one."""
        end = None if timeout is None else self._loop.time() + timeout
        failed: Optional[Error] = None
        for one in addresses:
            try:
                return await self._connect(one, None if end is None else max(0.0, end - self._loop.time()), options)
            except Error as error:
                failed = failed or error
        assert failed is not None
        raise failed

    async def _connect(self, address: Address, timeout: Optional[float], options: dict[str, Any]) -> Socket:
        socket = self._context.socket(_family_of(address), **options)
        try:
            await result_of(_future(socket.connect(address, self._queue, timeout=timeout)))
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
        """Awaits the end of connections that are being closed gracefully, for `grace` seconds at most, and closes.
        Those that nobody closed, and listeners, are aborted."""
        end = self._loop.time() + grace
        while not self.closed and self._context.stats().sockets > self._left_open() and self._loop.time() < end:
            await asyncio.sleep(_REST)
        self.close()
        await asyncio.sleep(0)  # who was told of the end by the loop's next turn has heard of it

    def _left_open(self) -> int:
        return sum(not one._ending and not one._socket.closed for one in self._ends)


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
    so that several can be outstanding; awaiting it gives the number of bytes.

    on_cancel says what becomes of an operation that is cancelled, or late, when it has begun: 'abort' ends it with its
    connection where it has not ended a little later, whatever the peer does; 'wait' waits for the peer."""

    __slots__ = ("_context", "_socket", "_queue", "_unread", "_line", "_ending", "__weakref__")

    def __init__(self, context: Context, socket: _core.Socket) -> None:
        self._context = context
        self._socket = socket
        self._queue = context._queue
        self._unread = Unread()  # what cancelled receives took
        self._line: Optional[asyncio.Future[int]] = None  # the last receive that waits to be posted
        self._ending = False
        context._ends.add(self)

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

    def _posted(self, posted: Any, on_cancel: _OnCancel, timeout: Optional[float]) -> Operation:
        operation: Operation = posted
        if on_cancel == "abort":
            operation.abort_with(self._socket, self._context._abort_after, timeout)
        elif on_cancel != "wait":
            operation.cancel()
            raise ValueError(f"on_cancel is 'abort' or 'wait', not {on_cancel!r}")
        return operation

    def send(
        self,
        data: Any,
        *,
        urgent: bool = False,
        timeout: Optional[float] = None,
        complete_at: _CompleteAt = "reusable",
        path: _Path = "threshold",
        on_cancel: _OnCancel = "abort",
    ) -> asyncio.Future[int]:
        """Sends a Region or a Slice from where it lies; other memory is copied at once (WindowFullError: no room; see
        sendall)."""
        posted = self._socket.send(
            data, self._queue, None, urgent=urgent, timeout=timeout, complete_at=complete_at, path=path
        )
        return self._posted(posted, on_cancel, timeout)

    def recv(
        self,
        target: Any,
        *,
        wait_all: bool = False,
        timeout: Optional[float] = None,
        path: _Path = "threshold",
        on_cancel: _OnCancel = "abort",
    ) -> Operation:
        """Receives 1 byte or more, or with wait_all until the target is full. 0: the end of the stream. Memory that is
        not registered is filled by copying; where the library has no room for that now, it is posted later, in turn."""
        options: dict[str, Any] = {"wait_all": wait_all, "path": path, "on_cancel": on_cancel}
        if self._unread or self._line is not None:
            return receive_later(self, [target], timeout, options)
        try:
            return self._receive([target], timeout, **options)
        except WindowFullError:
            return receive_later(self, [target], timeout, options)

    def _receive(
        self,
        targets: Sequence[Any],
        timeout: Optional[float],
        *,
        wait_all: bool,
        on_cancel: _OnCancel,
        path: _Path = "threshold",
    ) -> Operation:
        posted: Any
        if len(targets) == 1:
            posted = self._socket.recv(targets[0], self._queue, None, wait_all=wait_all, timeout=timeout, path=path)
        else:
            posted = self._socket.recvv(targets, self._queue, None, wait_all=wait_all, timeout=timeout, path=path)
        posted._receives, posted._place = (targets, self._unread), self._unread.next_place()
        return self._posted(posted, on_cancel, timeout)

    def sendv(
        self, data: Sequence[_Registered], *, timeout: Optional[float] = None, on_cancel: _OnCancel = "abort"
    ) -> asyncio.Future[int]:
        """`send` of one range after the other."""
        return self._posted(self._socket.sendv(data, self._queue, timeout=timeout), on_cancel, timeout)

    def recvv(
        self,
        targets: Sequence[_Registered],
        *,
        wait_all: bool = False,
        timeout: Optional[float] = None,
        on_cancel: _OnCancel = "abort",
    ) -> asyncio.Future[int]:
        """`recv` into one range after the other."""
        options: dict[str, Any] = {"wait_all": wait_all, "on_cancel": on_cancel}
        if self._unread or self._line is not None:
            return receive_later(self, targets, timeout, options)
        return self._receive(targets, timeout, **options)

    def send_file(
        self,
        ranges: Sequence[_FileRange],
        *,
        header: Sequence[_Registered] = (),
        trailer: Sequence[_Registered] = (),
        strategy: Literal["pipelined", "plain", "direct", "mapped", "spliced"] = "pipelined",
        on_short: Literal["abort", "stop"] = "abort",
        drop_behind: bool = False,
        timeout: Optional[float] = None,
        complete_at: _CompleteAt = "reusable",
        path: _Path = "threshold",
        on_cancel: _OnCancel = "abort",
    ) -> asyncio.Future[int]:
        """`send` of parts of files, each a tuple (file, offset, length), between a header and a trailer of registered
        memory. The files stay open until it has ended. The `event` of its error tells how far it went."""
        posted = self._socket.send_file(
            ranges,
            self._queue,
            None,
            header=header,
            trailer=trailer,
            strategy=strategy,
            on_short=on_short,
            drop_behind=drop_behind,
            timeout=timeout,
            complete_at=complete_at,
            path=path,
        )
        return self._posted(posted, on_cancel, timeout)

    def recv_file(
        self,
        target: _FileRange,
        *,
        sync: Literal["none", "end", "every"] = "none",
        sync_every: int = 64 << 20,
        reserve: bool = True,
        on_short: Literal["abort", "stop"] = "abort",
        sparse: bool = False,
        drop_behind: bool = False,
        timeout: Optional[float] = None,
        path: _Path = "threshold",
        on_cancel: _OnCancel = "abort",
    ) -> asyncio.Future[int]:
        """The next bytes of the stream to a part of a file, a tuple (file, offset, length); the file stays open until it
        has ended. Cancelled, or with an error, its event tells how many came: those are in the file."""
        options: dict[str, Any] = {"reserve": reserve, "on_short": on_short, "path": path, "on_cancel": on_cancel}
        options.update(sync=sync, sync_every=sync_every, sparse=sparse, drop_behind=drop_behind)
        if self._unread or self._line is not None:
            return receive_file_later(self, target, timeout, options)
        return self._receive_file(target, timeout, **options)

    def _receive_file(
        self, target: _FileRange, timeout: Optional[float], *, on_cancel: _OnCancel, **options: Any
    ) -> Operation:
        posted = self._socket.recv_file(target, self._queue, None, timeout=timeout, **options)
        return self._posted(posted, on_cancel, timeout)

    async def sendall(self, data: Any, *, on_cancel: _OnCancel = "abort") -> None:
        """Sends all of it, registered or not; waits for room where `send` would raise. Cancelled, it has sent a part
        from the beginning on, perhaps none, perhaps all."""
        if isinstance(data, (_core.Region, _core.Slice)):
            await self.send(data, on_cancel=on_cancel)
        else:
            await send_all(self, memoryview(data).cast("B"), on_cancel)

    async def recv_exactly(self, count: int, *, on_cancel: _OnCancel = "abort") -> bytes:
        """So many bytes. asyncio.IncompleteReadError, with those that came, when the stream ends before. Cancelled, or
        with an error, it leaves what had come to the next receive."""
        if count < 0:
            raise ValueError("recv_exactly of less than nothing")
        target = bytearray(count)
        await receive_all(self, target, on_cancel)
        return bytes(target)

    async def recv_exactly_into(self, target: Any, *, on_cancel: _OnCancel = "abort") -> None:
        """Fills the target: registered memory where the bytes are to lie, or any other. Ends as recv_exactly does."""
        await receive_all(self, target, on_cancel)

    def await_urgent(
        self, *, timeout: Optional[float] = None, on_cancel: _OnCancel = "abort"
    ) -> asyncio.Future[_core.Event]:
        """The event of an urgent byte that the peer has announced."""
        return self._posted(self._socket.await_urgent(self._queue, timeout=timeout), on_cancel, timeout)

    def suspend(self, *, timeout: Optional[float] = None, on_cancel: _OnCancel = "abort") -> asyncio.Future[None]:
        """Moves the connection to a new queue pair; done when data flows again."""
        return self._posted(self._socket.suspend(self._queue, timeout=timeout), on_cancel, timeout)

    def shutdown(self, *, timeout: Optional[float] = None, on_cancel: _OnCancel = "abort") -> asyncio.Future[None]:
        """Ends the sending direction, after all that was posted."""
        return self._posted(self._socket.shutdown(self._queue, timeout=timeout), on_cancel, timeout)

    def abort(self) -> None:
        """Ends the connection now: what was not sent is dropped, every operation ends, nothing waits for the peer."""
        self._socket.close(mode="abort")

    async def close(self, mode: _Mode = "graceful", *, timeout: Optional[float] = None) -> None:
        """Ends the connection. 'graceful' awaits that all was sent and the peer told so, for `timeout` seconds at most;
        what was not sent by then is dropped, also when the await is cancelled. 'abort' waits for nothing. Nothing when
        it has ended."""
        if self._socket.closed or self._context.closed:
            return
        self._ending = True
        if mode == "graceful" and not await self._drain(timeout):
            self.abort()
        self._socket.close(mode=mode)

    async def _drain(self, timeout: Optional[float]) -> bool:
        """Whether everything was sent, or nothing can be any more."""
        try:
            told = _future(self._socket.shutdown(self._queue, timeout=timeout))
        except ShutDownError:
            return True  # it was told before
        except Error:
            return False
        told.add_done_callback(hear)
        try:
            await asyncio.wait([told], timeout=timeout)
        except BaseException:
            self.abort()
            raise
        return told.done() and (told.exception() is None or isinstance(told.exception(), ShutDownError))

    async def __aenter__(self) -> Socket:
        return self

    async def __aexit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        """Closes gracefully; with an error or a cancellation on its way it aborts, and waits for nobody."""
        await self.close("graceful" if type is None else "abort")


class Listener:
    """Takes connections: `async for socket in listener`, until it is closed."""

    def __init__(self, context: Context, socket: _core.Socket) -> None:
        self._context = context
        self._socket = socket
        self._ready: collections.deque[Socket] = collections.deque()
        self._ending = False
        context._ends.add(self)

    @property
    def address(self) -> Tuple[str, int]:
        return self._socket.local

    async def accept(self) -> Socket:
        """The next connection. One that came while the await was cancelled is the next one's."""
        if self._ready:
            return self._ready.popleft()
        accepting = _future(self._socket.accept(self._context._queue))
        try:
            event = await accepting
        except asyncio.CancelledError as error:
            # Cancelled too late: the connection is there, perhaps told of already.
            too_late = error.args[0] if accepting.cancelled() and error.args else hear(accepting) or accepting.result()
            if isinstance(too_late, _core.Event) and too_late.has_connection:
                self._ready.append(self._take(too_late))
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


async def addresses_of(address: Address, flags: int = 0, family: int = 0) -> Sequence[Address]:
    """What a name stands for, by the resolver; an address stands for itself. socket.gaierror where nobody knows it."""
    host, _, port = address.rpartition(":") if isinstance(address, str) else (address[0], "", str(address[1]))
    try:
        ipaddress.ip_address(host.strip("[]"))
        return [address]
    except ValueError:
        if not port.isdigit() or (host == "" and isinstance(address, str)):
            return [address]  # what is wrong with it is said where it is used
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, int(port), family=family, type=_socket.SOCK_STREAM, flags=flags
    )
    return list(dict.fromkeys((str(one[4][0]), int(one[4][1])) for one in found))


def _family_of(address: Address) -> Literal["ipv4", "ipv6"]:
    host = address if isinstance(address, str) else address[0]
    return "ipv6" if host.startswith("[") or host.count(":") > 1 else "ipv4"
