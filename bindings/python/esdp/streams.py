"""asyncio's own streams, transports and servers over esdp:

    reader, writer = await esdp.streams.open_connection("127.0.0.1", 7471)
    server = await esdp.streams.start_server(serve, "127.0.0.1", 7471)
    transport, protocol = await esdp.streams.create_connection(factory, "127.0.0.1", 7471)
    server = await esdp.streams.create_server(factory, "127.0.0.1", 7471)

An address is a host and a port, one tuple of both, or one text ("127.0.0.1:7471"); a host may be a name. What they give
are asyncio's StreamReader and StreamWriter, and a transport that keeps asyncio's contract as that of TCP does. It has no
descriptor, so get_extra_info("socket") is None; "esdp_socket" is the esdp.Socket.

It receives into registered memory. Written `bytes` of ZERO_COPY_MIN and more are registered for the time of their
transfer and read by the peer where they lie; what is smaller, or may change, is gathered in registered memory first.
"""

from __future__ import annotations

import asyncio
import socket as _socket
from typing import Any, Awaitable, Callable, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar, Union

from esdp import aio
from esdp._errors import AddressInUseError, Error
from esdp._transport import ZERO_COPY_MIN, Transport, _name_of

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Optional[Awaitable[None]]]
Host = Union[aio.Address, Sequence[str], None]
_Protocol = TypeVar("_Protocol", bound=asyncio.BaseProtocol)
_Factory = Callable[[], asyncio.BaseProtocol]

_ACCEPT_AGAIN = 1.0  # seconds after a connection that could not be taken, as asyncio waits

__all__ = [
    "ListeningSocket",
    "Server",
    "Transport",
    "ZERO_COPY_MIN",
    "create_connection",
    "create_server",
    "open_connection",
    "start_server",
]


async def create_connection(
    protocol_factory: Callable[[], _Protocol],
    host: Optional[aio.Address] = None,
    port: Optional[int] = None,
    *,
    context: Optional[aio.Context] = None,
    timeout: Optional[float] = None,
    ssl: Any = None,
    family: int = 0,
    proto: int = 0,
    flags: int = 0,
    sock: Any = None,
    local_addr: Any = None,
    server_hostname: Optional[str] = None,
    **options: Any,
) -> Tuple[Transport, _Protocol]:
    """As loop.create_connection. Without a context it opens one with the options, and closes it with the connection.
    There is no TLS, and no socket of the system (ValueError)."""
    _refuse(ssl=ssl, sock=sock, local_addr=local_addr)
    address = _address(host, port)
    own = context is None
    used = context if context is not None else aio.Context(**options)
    try:
        socket = await used.connect_any(await aio.addresses_of(address, flags, family), timeout)
        try:
            protocol = protocol_factory()
            transport = Transport(used, socket, protocol, _closer_of(used) if own else lambda transport: None)
        except BaseException:
            socket.abort()
            raise
    except BaseException:
        if own:
            used.close()
        raise
    try:
        await asyncio.sleep(0)  # connection_made is called
    except BaseException:
        transport.abort()
        raise
    return transport, protocol


async def open_connection(
    host: Optional[aio.Address] = None, port: Optional[int] = None, *, limit: int = 2**16, **arguments: Any
) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As asyncio.open_connection. The arguments are those of create_connection."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await create_connection(lambda: protocol, host, port, **arguments)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class ListeningSocket(NamedTuple):
    """What programs ask Server.sockets: it names an address and can do nothing."""

    address: Tuple[Any, ...]
    family: _socket.AddressFamily
    type: _socket.SocketKind = _socket.SOCK_STREAM
    proto: int = 0

    def getsockname(self) -> Tuple[Any, ...]:
        """The address, with the port that was given."""
        return self.address

    def fileno(self) -> int:
        """-1: there is no descriptor."""
        return -1


class Server(asyncio.AbstractServer):
    """What create_server and start_server give: as asyncio.Server. Connections outlive it; a Context that is its own ends
    with the last of them."""

    def __init__(self, context: aio.Context, own: bool, listeners: List[aio.Listener], factory: _Factory) -> None:
        self._loop = asyncio.get_running_loop()
        self._context, self._owns_context = context, own
        self._listeners = listeners
        self._factory = factory
        self._addresses = [listener.address for listener in listeners]
        self._accepting: List[asyncio.Task[None]] = []
        self._transports: Set[Transport] = set()
        self._forever: Optional[asyncio.Future[None]] = None
        self._closed = False

    @property
    def address(self) -> Tuple[str, int]:
        """Where it listens, or the first of several places."""
        return self._addresses[0]

    @property
    def sockets(self) -> Tuple[ListeningSocket, ...]:
        """Empty once closed."""
        named = [_name_of(address) for address in self._addresses]
        families = [_socket.AF_INET6 if len(name) == 4 else _socket.AF_INET for name in named]
        return () if self._closed else tuple(map(ListeningSocket, named, families))

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return bool(self._accepting) and not self._closed

    async def start_serving(self) -> None:
        """Takes connections; those that came before wait in the backlog."""
        if self._closed:
            raise RuntimeError(f"server {self!r} is closed")
        if not self._accepting:
            self._accepting = [self._loop.create_task(self._accept(listener)) for listener in self._listeners]
        await asyncio.sleep(0)

    async def serve_forever(self) -> None:
        """Until it is cancelled, which closes the server, or the server is closed; ends with CancelledError."""
        if self._forever is not None:
            raise RuntimeError(f"server {self!r} is already being awaited on serve_forever()")
        self._forever = self._loop.create_future()
        try:
            await self.start_serving()
            await self._forever
        except asyncio.CancelledError:
            self.close()
            await self.wait_closed()
            raise
        finally:
            self._forever = None

    async def _accept(self, listener: aio.Listener) -> None:
        while True:
            try:
                self._begin(await listener.accept())
            except Error as error:
                if self._closed or self._context.closed:
                    return
                self._complain("esdp.streams.Server cannot take a connection", error)
                await asyncio.sleep(_ACCEPT_AGAIN)

    def _begin(self, socket: aio.Socket) -> None:
        try:
            self._transports.add(Transport(self._context, socket, self._factory(), self._on_ended))
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            socket.abort()
            self._complain("Error on transport creation for incoming connection", error)

    def _complain(self, message: str, error: BaseException) -> None:
        self._loop.call_exception_handler({"message": message, "exception": error, "server": self})

    def _on_ended(self, transport: Transport) -> None:
        self._transports.discard(transport)
        self._end_context()

    def _end_context(self) -> None:
        if self._closed and self._owns_context and not self._transports:
            self._context.close()

    def close(self) -> None:
        """Takes no more connections."""
        if self._closed:
            return
        self._closed = True
        for listener in self._listeners:
            listener.close()
        if self._forever is not None:
            self._forever.cancel()
        self._end_context()

    async def wait_closed(self) -> None:
        """Until the last connection could be taken."""
        if self._accepting:
            await asyncio.wait(self._accepting)

    async def __aenter__(self) -> Server:
        return self


async def create_server(
    protocol_factory: _Factory,
    host: Host = None,
    port: Optional[int] = None,
    *,
    context: Optional[aio.Context] = None,
    backlog: int = 128,
    start_serving: bool = True,
    ssl: Any = None,
    family: int = 0,
    flags: int = _socket.AI_PASSIVE,
    sock: Any = None,
    reuse_address: Optional[bool] = None,
    reuse_port: Optional[bool] = None,
    **options: Any,
) -> Server:
    """As loop.create_server, also for several hosts; None is every address of this machine. Without a context it opens
    one with the options. There is no TLS, and no socket of the system (ValueError)."""
    _refuse(ssl=ssl, sock=sock, reuse_port=reuse_port)
    several = isinstance(host, (list, set, frozenset)) or (isinstance(host, tuple) and port is not None)
    hosts: Sequence[Any] = list(host) if several else [host]  # type: ignore[arg-type]
    own = context is None
    used = context if context is not None else aio.Context(**options)
    try:
        addresses = [found for one in hosts for found in await aio.addresses_of(_address(one, port), flags, family)]
        server = Server(used, own, _listen(used, list(dict.fromkeys(addresses)), backlog), protocol_factory)
    except BaseException:
        if own:
            used.close()
        raise
    if start_serving:
        await server.start_serving()
    return server


async def start_server(
    serve: Connected, host: Host = None, port: Optional[int] = None, *, limit: int = 2**16, **arguments: Any
) -> Server:
    """As asyncio.start_server: calls serve(reader, writer) for each connection. The arguments are those of
    create_server."""

    def make() -> asyncio.BaseProtocol:
        loop = asyncio.get_running_loop()
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=limit, loop=loop), serve, loop=loop)

    return await create_server(make, host, port, **arguments)


def _listen(context: aio.Context, addresses: Sequence[aio.Address], backlog: int) -> List[aio.Listener]:
    """At each address that this machine has: a name may stand for one whose family it has not."""
    listeners: List[aio.Listener] = []
    failed: Optional[Error] = None
    for address in addresses:
        try:
            listeners.append(context.listen(address, backlog))
        except Error as error:
            failed = failed or error
            if isinstance(error, AddressInUseError):
                break
    if failed is not None and (not listeners or isinstance(failed, AddressInUseError)):
        for listener in listeners:
            listener.close()
        raise failed
    return listeners


def _address(host: Any, port: Optional[int]) -> aio.Address:
    if port is None:
        if host is None:
            raise ValueError("host and port was not specified")
        return host  # type: ignore[no-any-return]
    return (host or "", int(port))


def _closer_of(context: aio.Context) -> Callable[[Transport], None]:
    return lambda transport: context.close()


def _refuse(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value:
            raise ValueError(f"{name} is for sockets of the system: esdp.streams has none")
