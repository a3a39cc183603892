"""The module `socket` over esdp, for programs that block as they do on TCP:

    from esdp import socket_compat as socket

    with socket.create_server(("", 7471)) as server:
        connection, address = server.accept()
        with connection, connection.makefile("rw") as file:
            file.write(file.readline())

Streams of AF_INET and AF_INET6 alone. Memory is registered for the time of a call, where that is worth it. Constants,
exceptions and the functions of the resolver are those of `socket`.

A connected socket has a descriptor to wait on, for select and selectors; before that fileno() raises
io.UnsupportedOperation. esdp.streams is for asyncio. A Context is opened at the first use, and has ten seconds at the end of the program to
deliver what was sent; use_context() names another. docs/python.md lists what else differs from TCP.
"""

from __future__ import annotations

import contextlib
import errno
import io
import socket as _system
import struct
import warnings
from socket import SocketIO
from types import TracebackType
from typing import Any, Dict, List, Optional, Tuple, Type, Union

from esdp._compat import Address, Shared, checked, context_of_process, failure, resolved, use_context
from esdp._compat_transfers import Transfers
from esdp._core import Context, Stream, StreamListener
from esdp._errors import Error, ErrorKind

error = OSError
timeout = TimeoutError

_BACKLOG_MAX = 4096
_UNSET: Any = object()
_OF_RESOLVER = "gaierror herror getaddrinfo getnameinfo gethostbyname gethostname getfqdn".split()
_OF_RESOLVER += "inet_aton inet_ntoa inet_ntop inet_pton htonl htons ntohl ntohs".split()
_CONSTANTS = ("AF_", "AI_", "EAI_", "IPPROTO_", "MSG_", "NI_", "SHUT_", "SO_", "SOCK_", "SOL_", "SOMAXCONN", "TCP_")
# Options of setsockopt that change nothing here.
_TAKEN = [(_system.SOL_SOCKET, _system.SO_REUSEADDR), (_system.SOL_SOCKET, _system.SO_KEEPALIVE)]
_TAKEN += [(_system.IPPROTO_TCP, _system.TCP_NODELAY)]

__all__ = [
    "create_connection",
    "create_server",
    "error",
    "getdefaulttimeout",
    "has_dualstack_ipv6",
    "setdefaulttimeout",
    "socket",
    "socketpair",
    "timeout",
    "use_context",
]


def __getattr__(name: str) -> Any:
    """Constants, and the functions of the resolver, of `socket`."""
    if name in _OF_RESOLVER or name.startswith(_CONSTANTS):
        return getattr(_system, name)
    raise AttributeError(f"module 'esdp.socket_compat' has no attribute {name!r}")


def getdefaulttimeout() -> Optional[float]:
    """Of sockets that are made from here on, in seconds."""
    return Shared.timeout


def setdefaulttimeout(timeout: Optional[float]) -> None:
    """Of sockets that are made from here on, in seconds; None: they wait without end."""
    Shared.timeout = checked(timeout)





class socket(Transfers):
    """As socket.socket, over esdp."""

    def __init__(
        self,
        family: int = -1,
        type: int = -1,
        proto: int = -1,
        fileno: Optional[int] = None,
        *,
        context: Optional[Context] = None,
    ) -> None:
        self._gone = True  # until it is made
        self._stream: Optional[Stream] = None
        self._listener: Optional[StreamListener] = None
        if fileno is not None:
            raise io.UnsupportedOperation("a socket of esdp is made of no descriptor")
        self._family = _system.AF_INET if family == -1 else _system.AddressFamily(family)
        if self._family not in (_system.AF_INET, _system.AF_INET6):
            raise failure(errno.EAFNOSUPPORT)
        if type not in (-1, _system.SOCK_STREAM) or proto not in (-1, 0, _system.IPPROTO_TCP):
            raise failure(errno.EPROTONOSUPPORT)
        self._proto = max(proto, 0)
        self._context = context
        self._timeout = Shared.timeout
        self._local: Optional[Tuple[str, int]] = None
        self._options: Dict[Tuple[int, int], int] = {}
        self._aborts = self._deaf = self._closed = self._gone = False
        self._io_refs = 0

    # --- its end and its file ---

    def close(self) -> None:
        """What was sent still leaves, and files of makefile() stay open."""
        self._closed = True
        if self._io_refs <= 0:
            self._real_close()

    def _real_close(self) -> None:
        if self._gone:
            return
        self._gone = True
        if self._listener is not None:
            self._listener.close()
        if self._stream is not None:
            self._stream.abort() if self._aborts else self._stream.close(wait=False)

    def _decref_socketios(self) -> None:
        self._io_refs = max(self._io_refs - 1, 0)
        if self._closed:
            self.close()

    def __del__(self) -> None:
        if not self._gone and (self._stream or self._listener):
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            self._real_close()

    def __enter__(self) -> socket:
        return self

    def __exit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = "[closed] " if self._gone else ""
        return f"<esdp.socket_compat.socket {closed}family={int(self._family)}, laddr={self._name()}>"

    def __getstate__(self) -> None:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def makefile(
        self,
        mode: str = "r",
        buffering: Optional[int] = None,
        *,
        encoding: Optional[str] = None,
        errors: Optional[str] = None,
        newline: Optional[str] = None,
    ) -> Any:
        """As socket.makefile: buffered, and text without "b" in its mode."""
        if not set(mode) <= {"r", "w", "b"}:
            raise ValueError(f"invalid mode {mode!r} (only r, w, b allowed)")
        self._check()
        reads, writes = "r" in mode or "w" not in mode, "w" in mode
        system: Any = self  # SocketIO asks for what is here
        raw: Any = SocketIO(system, ("rw" if writes else "r") if reads else "w")
        self._io_refs += 1
        size = io.DEFAULT_BUFFER_SIZE if buffering is None or buffering < 0 else buffering
        if size == 0:
            if "b" not in mode:
                raise ValueError("unbuffered streams must be binary")
            return raw
        buffered: Any
        if reads and writes:
            buffered = io.BufferedRWPair(raw, raw, size)
        else:
            buffered = io.BufferedReader(raw, size) if reads else io.BufferedWriter(raw, size)
        if "b" in mode:
            return buffered
        text = io.TextIOWrapper(buffered, encoding, errors, newline)
        text.mode = mode  # type: ignore[misc]
        return text

    def fileno(self) -> int:
        """Of a connected one: for nothing but waiting. -1 once closed."""
        if self._gone:
            return -1
        if self._stream is not None:
            return self._stream.fileno()
        raise io.UnsupportedOperation("a socket of esdp has no descriptor before it is connected, nor has a listener")

    # --- the connection ---

    def bind(self, address: Address) -> None:
        """For a listen or a connect, which tell what is wrong with it."""
        self._check()
        local = resolved("bind", address, self._family, passive=True)
        if self._local is not None or self._stream or self._listener:
            raise failure(errno.EINVAL)
        self._local = local

    def listen(self, backlog: int = 128) -> None:
        self._check()
        if self._stream is not None:
            raise failure(errno.EINVAL)
        if self._listener is not None:
            return
        local = self._local or ("::" if self._family == _system.AF_INET6 else "0.0.0.0", 0)
        with self._as_of_the_system():
            count = min(max(backlog, 1), _BACKLOG_MAX)
            self._listener = StreamListener.listen(self._context or context_of_process(), local, count)

    def accept(self) -> Tuple[socket, Address]:
        self._check()
        if self._listener is None:
            raise failure(errno.EINVAL)
        with self._as_of_the_system():
            try:
                stream = self._listener.accept(timeout=self._timeout)
            except Error as error:
                if error.kind == ErrorKind.SHUT_DOWN and not self._gone:
                    raise failure(errno.EINVAL) from error  # shutdown() was called
                raise
        accepted = socket(self._family, context=self._context)
        accepted._stream = stream
        return accepted, accepted.getpeername()

    def connect(self, address: Address) -> None:
        """Waits also with a timeout of 0 (BlockingIOError is for sockets that can be watched)."""
        self._check()
        peer = resolved("connect", address, self._family, passive=False)
        if self._stream or self._listener:
            raise failure(errno.EISCONN)
        with self._as_of_the_system():
            self._stream = Stream.connect(
                self._context or context_of_process(), peer, local=self._local, timeout=self._timeout or None
            )

    def connect_ex(self, address: Address) -> int:
        try:
            self.connect(address)
        except _system.gaierror:
            raise
        except OSError as error:
            return error.errno or errno.EAGAIN
        return 0

    def shutdown(self, how: int) -> None:
        """SHUT_RD: what comes is not read any more; it wakes nobody who reads."""
        if self._listener is not None and not self._gone:
            return self._listener.close()
        stream = self._connected(errno.ENOTCONN)
        if how not in (_system.SHUT_RD, _system.SHUT_WR, _system.SHUT_RDWR):
            raise failure(errno.EINVAL)
        if how != _system.SHUT_WR:
            self._deaf = True
        if how != _system.SHUT_RD:
            with self._as_of_the_system(), contextlib.suppress(BrokenPipeError):  # it was before
                stream.shutdown_write()

    def _name(self) -> Address:
        if self._stream is not None:
            return self._tuple(self._stream.local)
        if self._listener is not None:
            return self._tuple(self._listener.local)
        return self._tuple(self._local or ("::" if self._family == _system.AF_INET6 else "0.0.0.0", 0))

    def _tuple(self, address: Tuple[str, int]) -> Address:
        return (*address, 0, 0) if self._family == _system.AF_INET6 else address

    def getsockname(self) -> Address:
        self._check()
        return self._name()

    def getpeername(self) -> Address:
        return self._tuple(self._connected(errno.ENOTCONN).peer)

    # --- options ---

    def settimeout(self, value: Optional[float]) -> None:
        """Of each call, in seconds; 0: none waits, None: without end."""
        self._timeout = checked(value)

    def gettimeout(self) -> Optional[float]:
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        self._timeout = None if flag else 0.0

    def getblocking(self) -> bool:
        return self._timeout != 0

    def setsockopt(self, level: int, option: int, value: Any, optlen: Optional[int] = None) -> None:
        """SO_LINGER of 0 seconds makes close() abort. What has no meaning here is taken: SO_REUSEADDR, SO_KEEPALIVE and
        TCP_NODELAY."""
        self._check()
        if (level, option) == (_system.SOL_SOCKET, _system.SO_LINGER):
            self._aborts = struct.unpack("ii", value) == (1, 0)
        elif (level, option) in _TAKEN:
            self._options[level, option] = int(bool(value))
        else:
            raise failure(errno.ENOPROTOOPT)

    def getsockopt(self, level: int, option: int, buflen: int = 0) -> Union[int, bytes]:
        self._check()
        known = {
            (_system.SOL_SOCKET, _system.SO_TYPE): int(_system.SOCK_STREAM),
            (_system.SOL_SOCKET, _system.SO_ERROR): 0,
            (_system.SOL_SOCKET, _system.SO_ACCEPTCONN): int(self._listener is not None),
            **{one: self._options.get(one, 0) for one in _TAKEN},
        }
        if (level, option) not in known:
            raise failure(errno.ENOPROTOOPT)
        value = known[level, option]
        return struct.pack("i", value) if buflen else value

    @property
    def timeout(self) -> Optional[float]:
        return self._timeout

    @property
    def family(self) -> _system.AddressFamily:
        return self._family

    @property
    def type(self) -> _system.SocketKind:
        return _system.SOCK_STREAM

    @property
    def proto(self) -> int:
        return self._proto

    @property
    def stream(self) -> Optional[Stream]:
        """The esdp.Stream behind it, once it is connected."""
        return self._stream


# --- functions ---


def create_connection(
    address: Tuple[Optional[str], int],
    timeout: Optional[float] = _UNSET,
    source_address: Optional[Address] = None,
    *,
    all_errors: bool = False,
) -> socket:
    """As socket.create_connection: the first of the host's addresses that answers."""
    failures: List[OSError] = []
    host, port = address
    for found in _system.getaddrinfo(host, port, 0, _system.SOCK_STREAM):
        made = socket(found[0])
        try:
            if timeout is not _UNSET:
                made.settimeout(timeout)
            if source_address:
                made.bind(source_address)
            made.connect(found[4])
            return made
        except OSError as failed:
            failures.append(failed)
            made.close()
    if not failures:
        raise OSError("getaddrinfo returns an empty list")
    if all_errors:
        raise ExceptionGroup("create_connection failed", failures)
    raise failures[0]


def has_dualstack_ipv6() -> bool:
    """False: a listener is of one family."""
    return False


def create_server(
    address: Address,
    *,
    family: int = _system.AF_INET,
    backlog: Optional[int] = None,
    reuse_port: bool = False,
    dualstack_ipv6: bool = False,
) -> socket:
    """A socket that listens, as socket.create_server."""
    if reuse_port:
        raise ValueError("SO_REUSEPORT not supported on this platform")
    if dualstack_ipv6:
        raise ValueError("dualstack_ipv6 not supported on this platform")
    made = socket(family)
    try:
        made.bind(address)
        made.listen(128 if backlog is None else backlog)
    except OSError as failed:
        made.close()
        raise OSError(failed.errno, f"{failed.strerror} (while attempting to bind on address {address!r})") from None
    except BaseException:
        made.close()
        raise
    return made


def socketpair(family: int = _system.AF_INET, type: int = _system.SOCK_STREAM, proto: int = 0) -> Tuple[socket, socket]:
    """Two sockets that are connected with each other, by way of this machine's own address."""
    with socket(family, type, proto) as listener:
        listener.settimeout(None)
        listener.bind(("::1" if family == _system.AF_INET6 else "127.0.0.1", 0))
        listener.listen(1)
        client = socket(family, type, proto)
        try:
            client.connect(listener.getsockname())
            server, _ = listener.accept()
        except BaseException:
            client.close()
            raise
    return client, server
