"""Sockets over RDMA: registered memory, posted operations, completions from an event queue.

    with esdp.Context() as context, context.queue() as queue:
        region = context.register(bytearray(1 << 20))
        socket = context.socket()
        socket.connect("127.0.0.1:7471", queue)
        for event in queue.get(): ...

The classes are those of the C++ headers; docs/python.md is the guide, esdp.aio is for asyncio.
"""

import atexit as _atexit
import sys as _sys

try:
    import esdp._core
except ImportError as _error:
    raise ImportError(
        f"esdp's module does not load into Python {_sys.version.split()[0]} ({_sys.executable}): "
        f"{' '.join(str(_error).split())}; what Bazel builds is for Python 3.11, /usr/bin/python3 of Debian 12, and this "
        f"builds it for another: {_sys.executable} -m pip install ./bindings/python --no-build-isolation",
        name=_error.name,
        path=_error.path,
    ) from None

from esdp import _core
from esdp._core import (
    Context,
    ContextStats,
    DiagnosticsReport,
    Event,
    EventQueue,
    FabricReport,
    LimitReport,
    OpId,
    QueueStats,
    Region,
    Slice,
    Socket,
    SocketStats,
    Stream,
    StreamListener,
    StreamReadiness,
    StreamStats,
)
from esdp._errors import (
    AbortedError,
    AddressInUseError,
    AfterForkError,
    BadHandleError,
    BusyError,
    CancelledError,
    DeadlineError,
    Error,
    ErrorKind,
    FabricError,
    FileError,
    InternalError,
    InterruptError,
    InvalidArgumentError,
    NoSpaceError,
    PeerProtocolError,
    PeerResetError,
    PeerSilentError,
    QueueFullError,
    RefusedError,
    RegistrationError,
    RemoteAccessError,
    ShutDownError,
    UnreachableError,
    UnsupportedError,
    WindowFullError,
    WouldBlockError,
    WrongStateError,
)
from esdp._errors import make_error as _make_error

__version__ = "0.1.0"

# A threshold that no transfer reaches.
NEVER = 2**64 - 1
# A size that is chosen for the fabric that a connection is on.
BY_FABRIC = 2**32 - 1

__all__ = [
    "AbortedError",
    "AddressInUseError",
    "AfterForkError",
    "BY_FABRIC",
    "BadHandleError",
    "BusyError",
    "CancelledError",
    "Context",
    "ContextStats",
    "DeadlineError",
    "DiagnosticsReport",
    "Error",
    "ErrorKind",
    "Event",
    "EventQueue",
    "FabricError",
    "FabricReport",
    "FileError",
    "InternalError",
    "InterruptError",
    "InvalidArgumentError",
    "LimitReport",
    "NEVER",
    "NoSpaceError",
    "OpId",
    "PeerProtocolError",
    "PeerResetError",
    "PeerSilentError",
    "QueueFullError",
    "QueueStats",
    "RefusedError",
    "Region",
    "RegistrationError",
    "RemoteAccessError",
    "ShutDownError",
    "Slice",
    "Socket",
    "SocketStats",
    "Stream",
    "StreamListener",
    "StreamReadiness",
    "StreamStats",
    "UnreachableError",
    "UnsupportedError",
    "WindowFullError",
    "WouldBlockError",
    "WrongStateError",
]

_core._set_exception_maker(_make_error)
# What was not closed ends before the interpreter does.
_atexit.register(_core._close_all)
