"""asyncio's own streams and protocols over esdp:

    reader, writer = await esdp.streams.open_connection("127.0.0.1:7471")
    server = await esdp.streams.start_server(serve, "127.0.0.1:7471")

They are asyncio.StreamReader and asyncio.StreamWriter, over a transport that receives into registered memory. Written
`bytes` of ZERO_COPY_MIN and more are registered for the time of their transfer and read by the peer where they lie;
what is smaller, or may change, is gathered in registered memory first.
"""

from __future__ import annotations

import asyncio
import collections
from types import TracebackType
from typing import Any, Awaitable, Callable, Optional, Tuple, Type, Union

from esdp import _core, aio
from esdp._errors import BusyError, Error

ZERO_COPY_MIN = 256 * 1024
_ROOM = 64 * 1024  # registered for each direction of a connection
_HIGH_WATER = 64 * 1024

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Optional[Awaitable[None]]]


class Transport(asyncio.Transport):
    """An asyncio transport over a connected aio.Socket."""

    def __init__(self, context: aio.Context, socket: aio.Socket, protocol: asyncio.Protocol, owns_context: bool) -> None:
        super().__init__({"peername": socket.peer, "sockname": socket.local, "esdp_socket": socket.core})
        self._loop = asyncio.get_running_loop()
        self._context, self._owns_context = context, owns_context
        self._socket = socket
        self._protocol = protocol
        self._incoming = context.allocate(_ROOM)
        self._outgoing = context.allocate(_ROOM)
        self._incoming_view, self._outgoing_view = self._incoming.view(), self._outgoing.view()
        self._pending: collections.deque[Union[bytes, bytearray]] = collections.deque()
        self._pending_bytes = 0
        self._sending: Optional[asyncio.Future[int]] = None
        self._lent: Optional[_core.Region] = None
        self._receiving: Optional[asyncio.Future[int]] = None
        self._high, self._low = _HIGH_WATER, _HIGH_WATER // 4
        self._paused_reading = self._paused_writing = False
        self._eof_asked = self._eof_sent = self._eof_seen = False
        self._closing = self._lost = False
        self._loop.call_soon(protocol.connection_made, self)
        self._loop.call_soon(self._receive)

    # --- receiving ---

    def _receive(self) -> None:
        if self._receiving is not None or self._paused_reading or self._closing or self._eof_seen:
            return
        try:
            self._receiving = self._socket.recv(self._incoming)
        except Error as error:
            self._lose(error)
            return
        self._receiving.add_done_callback(self._on_received)

    def _on_received(self, future: asyncio.Future[int]) -> None:
        self._receiving = None
        error = _error_of(future)
        if self._closing or future.cancelled():
            return
        if error is not None:
            self._lose(error)
            return
        count = future.result()
        if count > 0:
            self._protocol.data_received(self._incoming_view[:count].tobytes())
        else:
            self._eof_seen = True
            if not self._protocol.eof_received():
                self.close()
        self._receive()

    def is_reading(self) -> bool:
        return not (self._paused_reading or self._closing)

    def pause_reading(self) -> None:
        self._paused_reading = True

    def resume_reading(self) -> None:
        self._paused_reading = False
        self._receive()

    # --- sending ---

    def write(self, data: Union[bytes, bytearray, memoryview]) -> None:
        if self._eof_asked:
            raise RuntimeError("nothing can be written after write_eof")
        if len(data) == 0 or self._closing or self._lost:
            return
        if isinstance(data, bytes) and len(data) >= ZERO_COPY_MIN:
            self._pending.append(data)
        else:
            if not self._pending or isinstance(self._pending[-1], bytes):
                self._pending.append(bytearray())
            self._pending[-1] += data  # a copy: the caller may change what it wrote
        self._pending_bytes += len(data)
        self._send()
        if self._pending_bytes > self._high and not self._paused_writing:
            self._paused_writing = True
            self._protocol.pause_writing()

    def _send(self) -> None:
        if self._sending is not None or self._lost:
            return
        if not self._pending:
            self._send_end()
            return
        try:
            self._sending = self._socket.send(self._next_piece())
        except Error as error:
            self._lose(error)
            return
        self._sending.add_done_callback(self._on_sent)

    def _next_piece(self) -> Union[_core.Region, _core.Slice]:
        first = self._pending[0]
        if isinstance(first, bytes):
            self._pending.popleft()
            self._lent = self._context.register(first)
            return self._lent
        piece = first[:_ROOM]
        del first[:_ROOM]
        if not first:
            self._pending.popleft()
        self._outgoing_view[: len(piece)] = piece
        return self._outgoing[: len(piece)]

    def _on_sent(self, future: asyncio.Future[int]) -> None:
        self._sending = None
        if self._lent is not None:
            self._lent.close()
            self._lent = None
        error = _error_of(future)
        if self._lost or future.cancelled():
            return
        if error is not None:
            self._lose(error)
            return
        self._pending_bytes -= future.result()
        if self._paused_writing and self._pending_bytes <= self._low:
            self._paused_writing = False
            self._protocol.resume_writing()
        self._send()

    def _send_end(self) -> None:
        """Everything that was written has gone."""
        if self._closing:
            self._finish()
        elif self._eof_asked and not self._eof_sent:
            self._eof_sent = True
            try:
                self._socket.shutdown().add_done_callback(_error_of)  # the receiving direction sees it
            except Error as error:
                self._lose(error)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._eof_asked = True
        self._send()

    def get_write_buffer_size(self) -> int:
        return self._pending_bytes

    def get_write_buffer_limits(self) -> Tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: Optional[int] = None, low: Optional[int] = None) -> None:
        self._high = high if high is not None else (4 * low if low is not None else _HIGH_WATER)
        self._low = low if low is not None else self._high // 4

    # --- the end ---

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.Protocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing or self._lost

    def close(self) -> None:
        """What was written drains first."""
        if not self._closing:
            self._closing = True
            self._send()

    def abort(self) -> None:
        self._lose(None)

    def _finish(self) -> None:
        if not self._lost:
            self._lost = True
            self._loop.create_task(self._end("graceful", None))

    def _lose(self, error: Optional[BaseException]) -> None:
        if not self._lost:
            self._closing = self._lost = True
            self._loop.create_task(self._end("abort", error))

    async def _end(self, mode: Any, error: Optional[BaseException]) -> None:
        try:
            await self._socket.close(mode)
            waiting = [future for future in (self._receiving, self._sending) if future is not None]
            if waiting and not self._context.closed:
                await asyncio.wait(waiting)
        except Error as late:
            error = error or late
        finally:
            self._protocol.connection_lost(error if isinstance(error, Exception) else None)
            if self._owns_context:
                self._context.close()
            elif not self._context.closed:
                _let_go(self._incoming)
                _let_go(self._outgoing)


def _error_of(future: asyncio.Future[Any]) -> Optional[BaseException]:
    """To be asked in any case: asyncio complains of an error that nobody wanted to know."""
    return None if future.cancelled() else future.exception()


def _let_go(region: _core.Region) -> None:
    """One that is still in use, because the program ended before the transfer did, ends with its Context."""
    try:
        region.close()
    except BusyError:
        pass


async def open_connection(
    address: aio.Address,
    *,
    context: Optional[aio.Context] = None,
    limit: int = 2**16,
    timeout: Optional[float] = None,
    **options: Any,
) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As asyncio.open_connection. Without a context it opens one with the options, and closes it with the stream."""
    loop = asyncio.get_running_loop()
    own = context is None
    used = context if context is not None else aio.Context(**options)
    try:
        socket = await used.connect(address, timeout=timeout)
    except BaseException:
        if own:
            used.close()
        raise
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = Transport(used, socket, protocol, own)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class Server:
    """What start_server gives: `async with server: await server.serve_forever()`."""

    def __init__(self, context: aio.Context, own: bool, listener: aio.Listener, serve: Connected, limit: int) -> None:
        self._context, self._owns_context = context, own
        self._listener = listener
        self._serve = serve
        self._limit = limit
        self._task = asyncio.get_running_loop().create_task(self._accept())

    @property
    def address(self) -> Tuple[str, int]:
        return self._listener.address

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        async for socket in self._listener:
            reader = asyncio.StreamReader(limit=self._limit, loop=loop)
            protocol = asyncio.StreamReaderProtocol(reader, self._serve, loop=loop)
            Transport(self._context, socket, protocol, False)

    def close(self) -> None:
        """Takes no more connections."""
        self._listener.close()

    async def wait_closed(self) -> None:
        """Until the last connection could be taken; ends those that are left when the Context is the server's own."""
        await asyncio.wait([self._task])
        if self._owns_context:
            self._context.close()
            await asyncio.sleep(0)

    async def serve_forever(self) -> None:
        await asyncio.shield(self._task)

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()
        await self.wait_closed()


async def start_server(
    serve: Connected,
    address: aio.Address,
    *,
    context: Optional[aio.Context] = None,
    limit: int = 2**16,
    backlog: int = 128,
    **options: Any,
) -> Server:
    """As asyncio.start_server: calls serve(reader, writer) for each connection."""
    own = context is None
    used = context if context is not None else aio.Context(**options)
    try:
        listener = used.listen(address, backlog)
    except BaseException:
        if own:
            used.close()
        raise
    return Server(used, own, listener, serve, limit)
