"""An asyncio transport over a connected aio.Socket. It keeps the contract as asyncio's own over TCP does."""

from __future__ import annotations

import asyncio
import collections
from asyncio import constants, transports
from asyncio.log import logger
from typing import Any, Callable, Deque, Optional, Tuple, Union, cast

from esdp import _core, aio
from esdp._errors import Error, ShutDownError
from esdp._operations import hear, tell

ZERO_COPY_MIN = 256 * 1024
_ROOM = 64 * 1024  # registered for each direction of a connection


class Transport(transports._FlowControlMixin, asyncio.Transport):
    """An asyncio transport over a connected aio.Socket, which it owns. `ended` is called when nothing of it is left."""

    # What the type stubs do not tell of the mixin.
    _loop: asyncio.AbstractEventLoop
    _protocol_paused: bool
    _maybe_pause_protocol: Callable[[], None]
    _maybe_resume_protocol: Callable[[], None]

    _sendfile_compatible = constants._SendfileMode.FALLBACK

    def __init__(
        self,
        context: aio.Context,
        socket: aio.Socket,
        protocol: asyncio.BaseProtocol,
        ended: Callable[[Transport], None] = lambda transport: None,
    ) -> None:
        extra = {"peername": _name_of(socket.peer), "sockname": _name_of(socket.local), "esdp_socket": socket.core}
        super().__init__(extra, asyncio.get_running_loop())
        self._context = context
        self._socket = socket
        self._protocol: Any = protocol
        self._ended = ended
        self._incoming = context.allocate(_ROOM)
        self._outgoing = context.allocate(_ROOM)
        self._incoming_view, self._outgoing_view = self._incoming.view(), self._outgoing.view()
        self._from = self._to = 0  # of what came, the part that the protocol has not seen
        self._failed: Optional[BaseException] = None
        self._pending: Deque[Union[bytes, bytearray]] = collections.deque()
        self._pending_bytes = 0
        self._sending: Optional[asyncio.Future[int]] = None
        self._lent: Optional[_core.Region] = None
        self._receiving: Optional[asyncio.Future[int]] = None
        self._paused_reading = False
        self._eof_asked = self._eof_sent = self._eof_seen = self._eof_told = False
        self._closing = self._lost = False
        self._written_in_vain = 0
        self._loop.call_soon(self._protocol.connection_made, self)
        self._loop.call_soon(self._receive)

    def __repr__(self) -> str:
        state = "closed" if self._lost else "closing" if self._closing else "open"
        return f"<esdp.streams.Transport to {self.get_extra_info('peername')}, {state}>"

    # --- receiving ---

    def _receive(self) -> None:
        if self._receiving is not None or not self.is_reading() or self._eof_seen or self._failed is not None:
            return
        try:
            self._receiving = self._socket.recv(self._incoming)
        except Error as error:
            self._lose(error)
            return
        tell(self._receiving, self._on_received)

    def _on_received(self, future: asyncio.Future[int]) -> None:
        self._receiving = None
        self._failed = hear(future)
        if self._closing or future.cancelled():
            return
        if self._failed is None:
            self._from, self._to = 0, future.result()
            self._eof_seen = self._to == 0
        self._hand_over()

    def _hand_over(self) -> None:
        """What has come goes to the protocol, as long as that wants it."""
        while self._from < self._to and self.is_reading():
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                self._fill_a_buffer(self._protocol)
            else:
                data = self._incoming_view[self._from : self._to].tobytes()
                self._from = self._to
                self._call("data_received", data)
        if not self.is_reading():
            return
        if self._failed is not None:
            self._lose(self._failed)
        elif not self._eof_seen:
            self._receive()
        elif not self._eof_told:
            self._eof_told = True
            stays, called = self._call("eof_received")
            if called and not stays:
                self.close()

    def _fill_a_buffer(self, protocol: asyncio.BufferedProtocol) -> None:
        got, called = self._call("get_buffer", -1)
        if not called:
            return
        buffer = memoryview(got).cast("B")
        count = min(len(buffer), self._to - self._from)
        if count == 0:
            self._fail(RuntimeError("get_buffer() returned an empty buffer"), "get_buffer")
            return
        buffer[:count] = self._incoming_view[self._from : self._from + count]
        self._from += count
        self._call("buffer_updated", count)

    def _call(self, name: str, *arguments: Any) -> Tuple[Any, bool]:
        """What the protocol answers, and whether it did."""
        try:
            return getattr(self._protocol, name)(*arguments), True
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._fail(error, name)
            return None, False

    def _fail(self, error: BaseException, name: str) -> None:
        message = f"Fatal error: protocol.{name}() call failed."
        if not isinstance(error, OSError):
            context = {"message": message, "exception": error, "transport": self, "protocol": self._protocol}
            self._loop.call_exception_handler(context)
        self._lose(error)

    def is_reading(self) -> bool:
        return not (self._paused_reading or self._closing)

    def pause_reading(self) -> None:
        """What has come already waits too."""
        if not self._closing:
            self._paused_reading = True

    def resume_reading(self) -> None:
        if self._paused_reading and not self._closing:
            self._paused_reading = False
            self._loop.call_soon(self._hand_over)

    # --- sending ---

    def write(self, data: Union[bytes, bytearray, memoryview]) -> None:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
        if self._eof_asked:
            raise RuntimeError("Cannot call write() after write_eof()")
        data = data.tobytes() if isinstance(data, memoryview) else data
        if len(data) == 0:
            return
        if self._lost:
            if self._written_in_vain >= constants.LOG_THRESHOLD_FOR_CONNLOST_WRITES:
                logger.warning("written to a connection that has ended")
            self._written_in_vain += 1
            return
        if isinstance(data, bytes) and len(data) >= ZERO_COPY_MIN:
            self._pending.append(data)
        else:
            if not self._pending or isinstance(self._pending[-1], bytes):
                self._pending.append(bytearray())
            self._pending[-1] += data  # a copy: the caller may change what it wrote
        self._pending_bytes += len(data)
        self._send()
        self._maybe_pause_protocol()

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
        tell(self._sending, self._on_sent)

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
        error = hear(future)
        if self._lost or future.cancelled():
            return
        if error is not None:
            self._lose(error)
            return
        self._pending_bytes -= future.result()
        self._maybe_resume_protocol()  # may write, close or abort
        self._send()

    def _send_end(self) -> None:
        """Everything that was written has gone."""
        if self._closing:
            self._drain()
        elif self._eof_asked and not self._eof_sent:
            self._eof_sent = True
            try:
                tell(self._socket.shutdown(), hear)  # the receiving direction sees it
            except Error as error:
                self._lose(error)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not (self._closing or self._eof_asked):
            self._eof_asked = True
            self._send()

    def get_write_buffer_size(self) -> int:
        """With what is on its way: the peer's provider has not got it yet."""
        return self._pending_bytes

    def set_write_buffer_limits(self, high: Optional[int] = None, low: Optional[int] = None) -> None:
        super().set_write_buffer_limits(high, low)
        self._maybe_pause_protocol()

    # --- the end ---

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        before, self._protocol = self._protocol, protocol
        # What asyncio's sendfile puts in place of a protocol for a while has this. One that was paused when it left is
        # resumed by sendfile itself, and paused again by its next write; one that was not is paused where it has to be.
        resumes = getattr(before, "_should_resume_writing", None)
        if resumes is not None and self._protocol_paused:
            self._protocol_paused = False
            if not resumes:
                self._maybe_pause_protocol()

    def get_protocol(self) -> asyncio.BaseProtocol:
        return cast(asyncio.BaseProtocol, self._protocol)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Reads no more. What was written drains first."""
        if not self._closing:
            self._closing = self._socket._ending = True
            self._send()

    def abort(self) -> None:
        """Ends it now, also when it was being closed."""
        if self._lost:
            self._socket.abort()
        else:
            self._lose(None)

    # No task does what follows: a loop that ends meanwhile would complain of one that it did not wait for.

    def _drain(self) -> None:
        self._lost = True
        try:
            tell(self._socket.shutdown(), lambda told: self._end(_mode_after(hear(told))))
        except Error as error:
            self._end(_mode_after(error))

    def _lose(self, error: Optional[BaseException]) -> None:
        if self._lost:
            return
        self._closing = self._lost = True
        self._pending.clear()
        self._pending_bytes = 0
        self._end("abort", error if isinstance(error, Exception) else None)

    def _end(self, mode: aio._Mode, error: Optional[Exception] = None) -> None:
        self._socket.core.close(mode=mode)
        self._loop.call_soon(self._protocol.connection_lost, error)
        self._let_go()

    def _let_go(self, *_: Any) -> None:
        """Of its memory, as soon as nothing is under way there."""
        for future in (self._receiving, self._sending):
            if future is not None and not future.done() and not self._context.closed:
                future.add_done_callback(self._let_go)
                return
        for region in (self._incoming, self._outgoing):
            region.close()
        self._ended(self)


def _mode_after(drained: Optional[BaseException]) -> aio._Mode:
    """How a connection is closed whose end was told to the peer, also before, or could not be told."""
    return "graceful" if drained is None or isinstance(drained, ShutDownError) else "abort"


def _name_of(address: Tuple[str, int]) -> Tuple[Any, ...]:
    """As sockets of the system name it."""
    return (*address, 0, 0) if ":" in address[0] else address
