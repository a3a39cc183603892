"""The bytes of files between the frames: into a file or memory of this side, or out of a file."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import struct
from typing import Any, Awaitable, Callable, Iterator, List, Optional, Protocol, Sequence, TypeVar

from esdp import _core
from esdp._errors import ErrorKind, make_error
from esdp._files_wire import (
    CHUNK_BYTES,
    TAIL_BYTES,
    Connection,
    DamagedError,
    Extent,
    check_tail,
    chunks_of,
    crc32c,
    lost,
    tail_of,
)
from esdp._operations import hear

_AHEAD = 4  # chunks
_EXTENTS_MAX = 1024
_SUM = struct.Struct(">IIQQ")  # what it is, the sum, and where its chunk lies
_SUMMED = 2
_T = TypeVar("_T")


async def in_thread(work: Callable[..., _T], *arguments: Any) -> _T:
    """Waits for it also when cancelled: what it uses is its own until it has ended."""
    running = asyncio.get_running_loop().run_in_executor(None, work, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        hear(running)
        raise


class Sink(Protocol):
    """Where chunks come to rest."""

    def post(self, chunk: Extent) -> Awaitable[int]:
        """Posts a receive for it."""

    async def settle(self, chunk: Extent, crc: int) -> None:
        """It has come whole: the oldest that was posted and not settled."""


class MemorySink:
    """`region` is memory for the bytes from `offset` on."""

    def __init__(self, connection: Connection, region: _core.Region, offset: int, check: bool, name: str) -> None:
        self._connection = connection
        self._region = region
        self._offset = offset
        self._check = check
        self._name = name

    def post(self, chunk: Extent) -> Awaitable[int]:
        at = chunk.offset - self._offset
        return self._connection.socket.recv(
            self._region[at : at + chunk.length], wait_all=True, timeout=self._connection.patience
        )

    async def settle(self, chunk: Extent, crc: int) -> None:
        at = chunk.offset - self._offset
        if self._check:
            await in_thread(_compare, self._region.view()[at : at + chunk.length], crc, self._name)


class FileSink:
    """Without Python in between."""

    def __init__(self, connection: Connection, fd: int) -> None:
        self._connection = connection
        self._fd = fd

    def post(self, chunk: Extent) -> Awaitable[int]:
        target = (self._fd, chunk.offset, chunk.length)
        return self._connection.socket.recv_file(target, reserve=False, timeout=self._connection.patience)

    async def settle(self, chunk: Extent, crc: int) -> None:
        pass


class SummedFileSink:
    """A chunk lies in memory until its sum was found right, so that no other gets into the file."""

    def __init__(self, connection: Connection, part: PartFile, region: _core.Region, name: str) -> None:
        self._connection = connection
        self._part = part
        self._region = region
        self._name = name
        self._posted = self._settled = 0

    def post(self, chunk: Extent) -> Awaitable[int]:
        at = self._posted % _AHEAD * CHUNK_BYTES
        self._posted += 1
        return self._connection.socket.recv(
            self._region[at : at + chunk.length], wait_all=True, timeout=self._connection.patience
        )

    async def settle(self, chunk: Extent, crc: int) -> None:
        at = self._settled % _AHEAD * CHUNK_BYTES
        self._settled += 1
        view = self._region.view()[at : at + chunk.length]
        await in_thread(_compare_and_write, view, crc, self._name, self._part, chunk)


# A view is let go at once: a traceback would keep it, and its region could not be closed.


def _compare(view: memoryview, crc: int, name: str) -> None:
    with view:
        if crc32c(view) != crc:
            raise DamagedError(errno.EBADMSG, "the CRC32C of what came differs", name)


def _compare_and_write(view: memoryview, crc: int, name: str, part: PartFile, chunk: Extent) -> None:
    with view:
        if crc32c(view) != crc:
            raise DamagedError(errno.EBADMSG, "the CRC32C of what came differs", name)
        done = 0
        while done < len(view):
            done += os.pwrite(part.fd, view[done:], chunk.offset + done)
    part.settle(chunk, crc)


async def receive(
    connection: Connection, extents: Sequence[Extent], sink: Sink, name: str, moved: Callable[[int], None]
) -> None:
    """With an error or a cancellation the connection has been aborted, and nothing uses the sink any more."""
    posted: collections.deque[tuple[Extent, bytearray, Awaitable[int], Awaitable[int]]] = collections.deque()
    futures: collections.deque[Any] = collections.deque(maxlen=2 * _AHEAD)
    chunks = chunks_of(extents)
    try:
        while True:
            while len(posted) < _AHEAD:
                chunk = next(chunks, None)
                if chunk is None:
                    break
                tail, data = bytearray(TAIL_BYTES), sink.post(chunk)
                futures.append(data)
                told: Awaitable[int] = connection.socket.recv(tail, wait_all=True, timeout=connection.patience)
                futures.append(told)
                posted.append((chunk, tail, data, told))
            if not posted:
                return
            chunk, tail, data, told = posted.popleft()
            if await data < chunk.length or await told < TAIL_BYTES:
                raise lost()
            await sink.settle(chunk, check_tail(tail, chunk, name))
            moved(chunk.length)
    except BaseException:
        await _abort(connection, futures)
        raise


async def send(
    connection: Connection, fd: int, chunks: Iterator[Extent], check: bool, name: str, moved: Callable[[int], None]
) -> None:
    """Brings these chunks of the file, until the server has said how it took them. With an error or a cancellation the connection has
    been aborted, and nothing uses the file any more."""
    memory = connection.context.allocate(_AHEAD * (CHUNK_BYTES + TAIL_BYTES) if check else _AHEAD * TAIL_BYTES)
    room = len(memory) // _AHEAD
    sent: collections.deque[tuple[int, asyncio.Future[int]]] = collections.deque()
    count = 0
    answer = asyncio.ensure_future(connection.next_answer(name, None))
    try:
        while True:
            while len(sent) < _AHEAD and not answer.done():
                chunk = next(chunks, None)
                if chunk is None:
                    break
                place = memory[count % _AHEAD * room : (count % _AHEAD + 1) * room]
                sent.append((chunk.length, await _send_chunk(connection, fd, chunk, place, check)))
                count += 1
            if not sent or answer.done():
                break
            next_end: set[asyncio.Future[Any]] = {sent[0][1], answer}
            await asyncio.wait(next_end, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                break
            length, future = sent.popleft()
            future.result()
            moved(length)
        await asyncio.wait_for(asyncio.shield(answer), connection.patience)
        if sent:
            raise lost()  # it said OK to what it has not got
    except BaseException:
        await _abort(connection, [future for _, future in sent] + [answer])
        raise
    finally:
        memory.close()


async def _send_chunk(
    connection: Connection, fd: int, chunk: Extent, place: _core.Slice, check: bool
) -> asyncio.Future[int]:
    if not check:
        place.view()[:TAIL_BYTES] = tail_of(0, chunk.offset)
        return connection.socket.send_file(
            [(fd, chunk.offset, chunk.length)], trailer=[place[:TAIL_BYTES]], timeout=connection.patience
        )
    crc = await in_thread(_read_and_sum, fd, chunk, place.view()[: chunk.length])
    place.view()[chunk.length : chunk.length + TAIL_BYTES] = tail_of(crc, chunk.offset)
    return connection.socket.send(place[: chunk.length + TAIL_BYTES], timeout=connection.patience)


def _read_and_sum(fd: int, chunk: Extent, view: memoryview) -> int:
    done = 0
    with view:
        while done < chunk.length:
            count = os.preadv(fd, [view[done:]], chunk.offset + done)
            if count == 0:
                raise make_error(ErrorKind.FILE, errno.EIO, "the file became shorter while it was sent")
            done += count
        return crc32c(view)


async def _abort(connection: Connection, futures: Any) -> None:
    """Everything that was posted has ended when this has."""
    connection.socket.abort()
    for future in futures:
        future.add_done_callback(hear)
    if futures:
        await asyncio.wait(futures)


def data_of(fd: int, size: int) -> List[Extent]:
    """The parts of a file that are data; all of it where they are too many for a request, or cannot be told."""
    extents: List[Extent] = []
    at = 0
    try:
        while at < size and len(extents) <= _EXTENTS_MAX:
            data = os.lseek(fd, at, os.SEEK_DATA)
            at = min(os.lseek(fd, data, os.SEEK_HOLE), size)
            if data < at:
                extents.append(Extent(data, at - data))
    except OSError as error:
        if error.errno != errno.ENXIO:  # no data behind there
            return [Extent(0, size)]
    return extents if len(extents) <= _EXTENTS_MAX else [Extent(0, size)]


def _before_holes(fd: int, size: int) -> int:
    """How far a part is there. Several chunks are on their way to the medium at once: what lies behind a hole may be there
    without what belongs before it."""
    return min(os.lseek(fd, 0, os.SEEK_HOLE), size) if size > 0 else 0


class PartFile:
    """A file that has not come whole. It lies beside the place that it is to have, under a name that goes by its etag and
    size, so that only the same file goes on where it was left. `offset`: how far that is, in whole chunks. With `sums`
    another file beside it has the sum of each chunk, and `offset` is as far as each one still is as it was summed."""

    def __init__(self, target: str, etag: int, size: int, resume: bool, sums: bool = False) -> None:
        folder, last = os.path.split(os.path.abspath(target))
        facts = b"%s/%d/%d" % (os.fsencode(last), etag, size)
        self._target = target
        self._path = os.path.join(folder, f".esdp-{hashlib.blake2b(facts, digest_size=8).hexdigest()}.part")
        self._sums_path = self._path[: -len("part")] + "sums"
        self._sums = -1
        self._size = size
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self.fd = os.open(self._path, flags, 0o644)
        try:
            self.offset = self._take(resume)
            if sums and size > CHUNK_BYTES:
                self._sums = os.open(self._sums_path, flags, 0o600)
                self.offset = self._verify(resume)
                os.ftruncate(self.fd, self.offset)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._sums_path)  # of another kind of get
        except BaseException:
            self.close()
            raise

    def _take(self, resume: bool) -> int:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = os.stat(self._path, follow_symlinks=False)
        except (BlockingIOError, FileNotFoundError):
            raise make_error(ErrorKind.BUSY, errno.EBUSY, f"{self._target}: somebody else fetches it") from None
        about = os.fstat(self.fd)
        if not stat.S_ISREG(about.st_mode) or (named.st_dev, named.st_ino) != (about.st_dev, about.st_ino):
            raise make_error(ErrorKind.BUSY, errno.EBUSY, f"{self._path}: was taken away, or is no plain file")
        there = min(_before_holes(self.fd, about.st_size), self._size) if resume else 0
        offset = there - there % CHUNK_BYTES
        os.ftruncate(self.fd, offset)
        return offset

    def _verify(self, resume: bool) -> int:
        """How far it is as it was summed; what was summed of more is forgotten."""
        offset = count = 0
        while resume:
            entry = os.pread(self._sums, _SUM.size, count * _SUM.size)
            if len(entry) < _SUM.size:
                break
            state, crc, at, length = _SUM.unpack(entry)
            if state != _SUMMED or at < offset or not 0 < length <= CHUNK_BYTES or at + length > self._size:
                break
            there = bytearray(os.pread(self.fd, length, at))
            if len(there) < length or crc32c(memoryview(there)) != crc:
                break
            offset, count = at + length, count + 1
        os.ftruncate(self._sums, count * _SUM.size)
        self._next_sum = count
        return offset

    def settle(self, chunk: Extent, crc: int) -> None:
        """The next chunk is in the file, and has this CRC32C."""
        if self._sums >= 0:
            entry = _SUM.pack(_SUMMED, crc, chunk.offset, chunk.length)
            os.pwrite(self._sums, entry, self._next_sum * _SUM.size)
            self._next_sum += 1

    def sha256(self) -> bytes:
        """Of all of it, which is there."""
        os.ftruncate(self.fd, self._size)
        digest, offset = hashlib.sha256(), 0
        while piece := os.pread(self.fd, CHUNK_BYTES, offset):
            digest.update(piece)
            offset += len(piece)
        return digest.digest()

    def finish(self, mtime_ns: int, sync: bool) -> None:
        """All of it is there: it gets its size, its time and its name."""
        os.ftruncate(self.fd, self._size)
        os.utime(self.fd, ns=(mtime_ns, mtime_ns))
        if sync:
            try:
                os.fsync(self.fd)
            except OSError:
                self.remove()  # what could not be brought to the medium may be lost, and the next fsync would go well
                raise
        os.rename(self._path, self._target)
        if self._sums >= 0:
            os.unlink(self._sums_path)
        if sync:
            folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def remove(self) -> None:
        os.unlink(self._path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._sums_path)

    def close(self) -> None:
        os.close(self.fd)
        if self._sums >= 0:
            os.close(self._sums)


def file_sink(connection: Connection, part: PartFile, memory: Optional[_core.Region], name: str) -> Sink:
    """`memory`: of chunk_memory, where chunks are summed."""
    if memory is None:
        return FileSink(connection, part.fd)
    return SummedFileSink(connection, part, memory, name)


def chunk_memory(connection: Connection) -> _core.Region:
    return connection.context.allocate(_AHEAD * CHUNK_BYTES)
