"""What esdp.files and esdp_serve say to each other: requests and answers in frames, chunks of files with tails, sums.

tools/esdp_files says the same in C++, and what each means.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple, Type

from esdp import aio
from esdp._errors import Error, ErrorKind, make_error

try:
    from google.protobuf.message import DecodeError

    from esdp import _files_pb2
except ImportError as _error:
    if not (_error.name or "").startswith("google"):
        raise
    raise ImportError(
        "esdp.files speaks in protobuf's messages, which are not installed: apt-get install python3-protobuf, "
        "or pip install 'esdp[files]'",
        name=_error.name,
    ) from None

wire = _files_pb2
CHUNK_BYTES = 1 << 20
TAIL_BYTES = 16
_FRAME_BYTES_MAX = 65536
_VERSION = 1
_FILE_BYTES_MAX = 2**63 - 1


class ServerError(Error):
    """The server says no; `filename` is the file's name there. `retry_after`: seconds after which it may say something
    else. Its `kind` is NONE: the library has no part in it."""

    retry_after: Optional[float] = None


class NotFoundError(ServerError, FileNotFoundError):
    """The server has no such file or folder."""


class ForbiddenError(ServerError, PermissionError):
    """The server may not, or the name leads out of what it serves, or it only lets read."""


class InvalidRequestError(ServerError, ValueError):
    """That is no name, no regular file, or an offset behind the end."""


class UnavailableError(ServerError, BlockingIOError):
    """It has too many clients or files now, or is about to end: try again."""


class ChangedError(ServerError):
    """The file is not the one of the etag, or was written to meanwhile. Nothing of it is kept."""


class ExistsError(ServerError, FileExistsError):
    """A file of that name is there, and replace=True was not said."""


class FullError(ServerError):
    """No room for the file there."""


class MediumError(ServerError):
    """The server's medium failed, or the file has become shorter than it was."""


class DamagedError(ServerError):
    """The CRC32C of what came differs from the one that the server said."""


_ERRORS: dict[int, Tuple[Type[ServerError], int]] = {
    wire.NOT_FOUND: (NotFoundError, errno.ENOENT),
    wire.PERMISSION_DENIED: (ForbiddenError, errno.EACCES),
    wire.INVALID: (InvalidRequestError, errno.EINVAL),
    wire.UNAVAILABLE: (UnavailableError, errno.EAGAIN),
    wire.CHANGED: (ChangedError, errno.ESTALE),
    wire.EXISTS: (ExistsError, errno.EEXIST),
    wire.NO_SPACE: (FullError, errno.ENOSPC),
    wire.FAILED: (MediumError, errno.EIO),
}


def refusal(status: int, text: str, name: str, retry_after_ms: int = 0) -> ServerError:
    """The error that a status which is not OK stands for."""
    kind, number = _ERRORS.get(status, (ServerError, errno.EIO))
    error = kind(number, text or f"the server answers with status {status}", name)
    if retry_after_ms > 0:
        error.retry_after = retry_after_ms / 1000
    return error


def lost() -> Error:
    return make_error(ErrorKind.PEER_RESET, errno.ECONNRESET, "the server has ended the connection")


def misbehaves(what: str) -> Error:
    return make_error(ErrorKind.PEER_PROTOCOL, errno.EPROTO, f"the server does not speak as esdp_serve does: {what}")


class Extent(NamedTuple):
    """Bytes of a file."""

    offset: int
    length: int


def chunks_of(extents: Sequence[Extent]) -> Iterator[Extent]:
    """An extent begins a chunk of its own."""
    for offset, length in extents:
        for at in range(0, length, CHUNK_BYTES):
            yield Extent(offset + at, min(CHUNK_BYTES, length - at))


def extents_of(answer: wire.Answer, offset: int) -> Sequence[Extent]:
    """The bytes that follow the answer to a Get from the offset on; an Error where it contradicts itself."""
    if answer.offset != offset or answer.size > _FILE_BYTES_MAX:
        raise misbehaves("it answers with another part of the file")
    if not answer.sparse:
        extents = [Extent(answer.offset, answer.length)] if answer.length > 0 else []
    else:
        extents = [Extent(one.offset, one.length) for one in answer.extents]
    at = answer.offset
    for extent in extents:
        if extent.length == 0 or extent.offset < at or extent.offset + extent.length > answer.size:
            raise misbehaves("the parts of the file are not in order")
        at = extent.offset + extent.length
    if sum(extent.length for extent in extents) != answer.length:
        raise misbehaves("the parts of the file are not as long as it says")
    return extents


def tail_of(crc: int, offset: int) -> bytes:
    return struct.pack(">IIQ", crc, 0, offset)


def check_tail(tail: bytearray, chunk: Extent, name: str) -> int:
    """The CRC32C that it tells, or the error."""
    crc, status, offset = struct.unpack(">IIQ", tail)
    if offset != chunk.offset:
        raise misbehaves("its chunks are not where they are to be")
    if status == wire.CHANGED:
        raise refusal(status, "the file was written to meanwhile", name)
    if status != wire.OK:
        raise refusal(status, "the server cannot read on", name)
    return int(crc)


# A program that has the module has this library: the module needs it.
_isal = ctypes.CDLL("libisal.so.2")
_isal.crc32_iscsi.restype = ctypes.c_uint32
_isal.crc32_iscsi.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32)


def crc32c(view: memoryview) -> int:
    """Of writable memory, with the interpreter lock released."""
    if len(view) == 0:
        return 0
    first = ctypes.c_char.from_buffer(view)
    return ~int(_isal.crc32_iscsi(ctypes.addressof(first), len(view), 0xFFFFFFFF)) & 0xFFFFFFFF


class Connection:
    """One connection to a server, for one request at a time. `patience`: seconds in which the server says or takes
    something."""

    def __init__(self, context: aio.Context, socket: aio.Socket, patience: float) -> None:
        self.context = context
        self.socket = socket
        self.patience = patience
        self.features = 0  # of the server, as Hello's answer has them
        self._last_id = 0

    @classmethod
    async def open(cls, context: aio.Context, address: aio.Address, patience: float, weight: int) -> Connection:
        """Connects, and has said Hello."""
        connection = cls(context, await context.connect(address, timeout=patience), patience)
        try:
            answer = await connection.ask(wire.Request(hello=wire.Hello(version=_VERSION, weight=weight)), "")
            if answer.version != _VERSION:
                raise misbehaves("it speaks another version")
            connection.features = answer.features
        except BaseException:
            connection.socket.abort()
            raise
        return connection

    async def ask(self, request: wire.Request, name: str) -> wire.Answer:
        """The answer, or the error that it is."""
        self._last_id += 1
        request.id = self._last_id
        message: bytes = request.SerializeToString()
        if len(message) > _FRAME_BYTES_MAX:
            raise ValueError("the name is too long")
        await self.socket.sendall(struct.pack(">I", len(message)) + message)
        return await self.next_answer(name, self.patience)

    async def next_answer(self, name: str, patience: Optional[float]) -> wire.Answer:
        """Of the last request."""
        (length,) = struct.unpack(">I", await self._read(4, patience))
        if not 0 < length <= _FRAME_BYTES_MAX:
            raise misbehaves("a frame is empty, or longer than 65536 bytes")
        try:
            answer: wire.Answer = wire.Answer.FromString(bytes(await self._read(length, self.patience)))
        except DecodeError:
            raise misbehaves("a frame is no answer") from None
        # What it says to no request at all is why it ends the connection.
        if answer.id != self._last_id and (answer.id != 0 or answer.status == wire.OK):
            raise misbehaves("an answer to another request")
        if answer.status != wire.OK:
            raise refusal(answer.status, answer.text, name, answer.retry_after_ms)
        return answer

    async def _read(self, count: int, patience: Optional[float]) -> bytearray:
        target = bytearray(count)
        if await self.socket.recv(target, wait_all=True, timeout=patience) < count:
            raise lost()
        return target
