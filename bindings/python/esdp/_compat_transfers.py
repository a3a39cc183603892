"""The bytes of a socket of esdp.socket_compat: its calls are those of socket.socket."""

from __future__ import annotations

import contextlib
import errno
import socket as _system
import time
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

from esdp._compat import failure
from esdp._core import Stream
from esdp._errors import Error, ErrorKind

_ERRNO = {ErrorKind.BAD_HANDLE: errno.EBADF, ErrorKind.LOCAL_ABORT: errno.EBADF, ErrorKind.WRONG_STATE: errno.ENOTCONN}
_PIECE = 1 << 20  # of a file, at a time


class Transfers:
    """What a connected socket does."""

    _stream: Optional[Stream]
    _timeout: Optional[float]
    _deaf: bool  # nothing is read any more
    _gone: bool  # closed, and no file is open

    def _check(self) -> None:
        if self._gone:
            raise failure(errno.EBADF)

    def _connected(self, otherwise: int) -> Stream:
        self._check()
        if self._stream is None:
            raise failure(otherwise)
        return self._stream

    @contextlib.contextmanager
    def _as_of_the_system(self) -> Iterator[None]:
        try:
            yield
        except Error as error:
            if error.kind == ErrorKind.DEADLINE_EXCEEDED and self._timeout is not None:
                raise failure(errno.EAGAIN) if self._timeout == 0 else TimeoutError("timed out") from error
            number = errno.EBADF if self._gone else _ERRNO.get(error.kind, error.errno or errno.EIO)
            raise failure(number) from error

    def _reading(self, room: int, flags: int) -> Dict[str, Any]:
        if flags & ~(_system.MSG_PEEK | _system.MSG_WAITALL | _system.MSG_DONTWAIT):
            raise failure(errno.EOPNOTSUPP)
        waits = self._timeout != 0 and not flags & _system.MSG_DONTWAIT
        least = max(room, 1) if flags & _system.MSG_WAITALL and waits else 1
        return {"min": least, "peek": bool(flags & _system.MSG_PEEK), "wait": waits, "timeout": self._timeout}

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        if bufsize < 0:
            raise ValueError("negative buffersize in recv")
        stream, how = self._connected(errno.ENOTCONN), self._reading(bufsize, flags)
        if self._deaf:
            return b""
        with self._as_of_the_system():
            return stream.read(bufsize, **how)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        if nbytes < 0:
            raise ValueError("negative buffersize in recv_into")
        with memoryview(buffer) as whole, whole.cast("B") as view:
            if view.readonly:
                given = type(buffer).__name__
                raise TypeError(f"recv_into() argument 1 must be read-write bytes-like object, not {given}")
            if nbytes > len(view):
                raise ValueError("buffer too small for requested bytes")
            room = nbytes or len(view)
            stream, how = self._connected(errno.ENOTCONN), self._reading(room, flags)
            if self._deaf:
                return 0
            with self._as_of_the_system(), view[:room] as target:
                return stream.read_into(target, **how)

    def recvfrom(self, bufsize: int, flags: int = 0) -> Tuple[bytes, None]:
        return self.recv(bufsize, flags), None

    def recvfrom_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> Tuple[int, None]:
        return self.recv_into(buffer, nbytes, flags), None

    def _writing(self, flags: int) -> Dict[str, Any]:
        if flags & ~(_system.MSG_OOB | _system.MSG_DONTWAIT | _system.MSG_NOSIGNAL):
            raise failure(errno.EOPNOTSUPP)
        waits = self._timeout != 0 and not flags & _system.MSG_DONTWAIT
        return {"wait": waits, "urgent": bool(flags & _system.MSG_OOB)}

    def send(self, data: Any, flags: int = 0) -> int:
        """All of it, unless the time is over or it does not wait."""
        with memoryview(data) as view:
            stream, how = self._connected(errno.EPIPE), self._writing(flags)
            with self._as_of_the_system():
                return stream.write(view, timeout=self._timeout, **how)

    def sendall(self, data: Any, flags: int = 0) -> None:
        end = None if self._timeout is None else time.monotonic() + self._timeout
        with memoryview(data) as whole, whole.cast("B") as view:
            stream, how = self._connected(errno.EPIPE), self._writing(flags)
            sent = 0
            while sent < len(view):
                left = None if end is None else max(end - time.monotonic(), 0.0)
                with self._as_of_the_system(), view[sent:] as rest:
                    sent += stream.write(rest, timeout=left, **how)

    def sendmsg(self, buffers: Sequence[Any], ancdata: Sequence[Any] = (), flags: int = 0, address: None = None) -> int:
        """Pieces, one after the other; there is no ancillary data."""
        stream, how = self._connected(errno.EPIPE), self._writing(flags)
        if list(ancdata) or address is not None:
            raise failure(errno.EOPNOTSUPP)
        with self._as_of_the_system():
            return stream.writev(list(buffers), timeout=self._timeout, **how)

    def sendfile(self, file: Any, offset: int = 0, count: Optional[int] = None) -> int:
        """A binary file from `offset` on, or `count` bytes of it; its position is behind what was sent."""
        if "b" not in getattr(file, "mode", "b"):
            raise ValueError("file should be opened in binary mode")
        if count is not None and not isinstance(count, int):
            raise TypeError(f"count must be a positive integer (got {count!r})")
        if count is not None and count <= 0:
            raise ValueError(f"count must be a positive integer (got {count!r})")
        if self._timeout == 0:
            raise ValueError("non-blocking sockets are not supported")
        sent, before = 0, file.tell()
        file.seek(offset)
        try:
            while data := file.read(_PIECE if count is None else min(_PIECE, count - sent)):
                self.sendall(data)
                sent += len(data)
        finally:
            file.seek(offset + sent if sent else before)
        return sent
