"""Every error of esdp: an OSError with errno, and one of Python's own wherever Python has one."""

from __future__ import annotations

import enum
import errno as _errno
from typing import TYPE_CHECKING, Optional, Type

if TYPE_CHECKING:
    from esdp._core import Event as _Event


class ErrorKind(enum.IntEnum):
    """Tells similar errors apart; api/esdp/status.h says who causes each and what to do."""

    NONE = 0
    INVALID_ARGUMENT = 1
    BAD_HANDLE = 2
    BAD_RANGE = 3
    WRONG_STATE = 4
    SHUT_DOWN = 5
    BUSY = 6
    AFTER_FORK = 7
    UNSUPPORTED = 8
    QUEUE_FULL = 9
    SOCKET_WINDOW = 10
    WOULD_BLOCK = 11
    MEMORY = 12
    CANCELLED = 13
    SIGNAL = 14
    DEADLINE_EXCEEDED = 15
    LOCAL_ABORT = 16
    ADDRESS_IN_USE = 17
    REFUSED = 18
    REJECTED = 19
    UNREACHABLE = 20
    HANDSHAKE_REFUSED = 21
    PEER_RESET = 22
    PEER_SILENT = 23
    PEER_PROTOCOL = 24
    REMOTE_ACCESS = 25
    FABRIC = 26
    INTERNAL = 27
    FILE = 28
    NO_SPACE = 29


class Error(OSError):
    """Of every error that the library answers. `kind` tells similar ones apart; `event` is the one that told of it, where
    an operation ended so."""

    kind: ErrorKind = ErrorKind.NONE
    event: Optional[_Event] = None


# The caller's own: nothing has changed, no event will come.


class InvalidArgumentError(Error, ValueError):
    """An argument is wrong; the text names it."""


class BadHandleError(Error):
    """It was closed, or its Context was."""


class WrongStateError(Error):
    """Not (yet, any more) possible in this state."""


class ShutDownError(Error, BrokenPipeError):
    """Posted after, or pending at, shutdown or close."""


class BusyError(Error):
    """Operations still use it: wait for their events."""


class AfterForkError(Error, RuntimeError):
    """Opened before fork(): open a Context of your own in the child."""


class UnsupportedError(Error, NotImplementedError):
    """This fabric or version cannot."""


# Try again later: nothing has changed, no event will come.


class QueueFullError(Error, BlockingIOError):
    """Every slot of the event queue is taken or promised: take events, then post again."""


class WindowFullError(Error, BlockingIOError):
    """The pool for what is copied is in use: take events, then post again."""


class WouldBlockError(Error, BlockingIOError):
    """A call of a Stream that was not to wait would have to."""


class RegistrationError(Error, MemoryError):
    """A limit of memory or registration; the text names it, its use and the cure."""


# An operation ended so because somebody asked.


class CancelledError(Error):
    """By cancel or wake."""


class InterruptError(Error, InterruptedError):
    """A signal ended a wait. Python's own handlers run first, so that programs hardly see it."""


class DeadlineError(Error, TimeoutError):
    """Its time was over."""


class AbortedError(Error, ConnectionAbortedError):
    """This side aborted the connection, or dropped the socket."""


# The world's.


class AddressInUseError(Error):
    """Another listener has the port."""


class RefusedError(Error, ConnectionRefusedError):
    """Nobody listens there, or somebody would not have us."""


class UnreachableError(Error, ConnectionError):
    """No route, or no such address."""


class PeerResetError(Error, ConnectionResetError):
    """The peer went away without shutting down."""


class PeerSilentError(Error, TimeoutError, ConnectionError):
    """Keep-alive gave up on the peer."""


class PeerProtocolError(Error, ConnectionError):
    """The peer broke the protocol, or does not speak it as we can."""


class RemoteAccessError(Error, PermissionError):
    """A remote key, range or right was refused."""


class FabricError(Error):
    """The fabric failed."""


class InternalError(Error):
    """A fault of ours; the connection has ended."""


# The file of a send_file or recv_file.


class FileError(Error):
    """It ends early, or its medium failed."""


class NoSpaceError(Error):
    """Its file system is full, or a quota or limit of its size is reached."""


_CLASSES: dict[ErrorKind, Type[Error]] = {
    ErrorKind.INVALID_ARGUMENT: InvalidArgumentError,
    ErrorKind.BAD_HANDLE: BadHandleError,
    ErrorKind.BAD_RANGE: InvalidArgumentError,
    ErrorKind.WRONG_STATE: WrongStateError,
    ErrorKind.SHUT_DOWN: ShutDownError,
    ErrorKind.BUSY: BusyError,
    ErrorKind.AFTER_FORK: AfterForkError,
    ErrorKind.UNSUPPORTED: UnsupportedError,
    ErrorKind.QUEUE_FULL: QueueFullError,
    ErrorKind.SOCKET_WINDOW: WindowFullError,
    ErrorKind.WOULD_BLOCK: WouldBlockError,
    ErrorKind.MEMORY: RegistrationError,
    ErrorKind.CANCELLED: CancelledError,
    ErrorKind.SIGNAL: InterruptError,
    ErrorKind.DEADLINE_EXCEEDED: DeadlineError,
    ErrorKind.LOCAL_ABORT: AbortedError,
    ErrorKind.ADDRESS_IN_USE: AddressInUseError,
    ErrorKind.REFUSED: RefusedError,
    ErrorKind.REJECTED: RefusedError,
    ErrorKind.UNREACHABLE: UnreachableError,
    ErrorKind.HANDSHAKE_REFUSED: PeerProtocolError,
    ErrorKind.PEER_RESET: PeerResetError,
    ErrorKind.PEER_SILENT: PeerSilentError,
    ErrorKind.PEER_PROTOCOL: PeerProtocolError,
    ErrorKind.REMOTE_ACCESS: RemoteAccessError,
    ErrorKind.FABRIC: FabricError,
    ErrorKind.INTERNAL: InternalError,
    ErrorKind.FILE: FileError,
    ErrorKind.NO_SPACE: NoSpaceError,
}


def make_error(kind: int, errno: int, text: str) -> Error:
    """What the classes in C++ raise."""
    named = ErrorKind(kind) if kind in ErrorKind._value2member_map_ else ErrorKind.INTERNAL
    error = _CLASSES.get(named, Error)(errno or _errno.EIO, text)
    error.kind = named
    return error
