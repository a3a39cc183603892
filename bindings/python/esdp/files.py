"""A client of esdp_serve: lists, fetches and brings files.

    with esdp.files.Client("127.0.0.1:7472") as client:
        for entry in client.list():
            print(entry.name, entry.size)
        client.get("folder/file", "file", resume=True)

AsyncClient has the same for asyncio. Both want the package protobuf (python3-protobuf; pip install 'esdp[files]').

Bytes of files come and go in chunks of 1 MiB. With check=True each one is summed (CRC32C) and compared, beside the transfer;
without it nothing of Python touches the bytes of get and put. A file that has not come whole lies beside its place, under a
name of its own, and takes its place when it is there, with its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import stat as _stat
import threading
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Callable, Literal, NamedTuple, Optional, Type, TypeVar, Union

from esdp import aio
from esdp._errors import ErrorKind, make_error
from esdp._files_transfers import MemorySink, PartFile, chunk_memory, data_of, file_sink, in_thread, receive, send
from esdp._files_wire import (
    ChangedError,
    Connection,
    DamagedError,
    ExistsError,
    ForbiddenError,
    FullError,
    InvalidRequestError,
    MediumError,
    NotFoundError,
    ServerError,
    UnavailableError,
    chunks_of,
    extents_of,
    misbehaves,
    refusal,
    wire,
)

__all__ = [
    "AsyncClient",
    "ChangedError",
    "Client",
    "DamagedError",
    "ExistsError",
    "FileInfo",
    "ForbiddenError",
    "FullError",
    "InvalidRequestError",
    "MediumError",
    "NotFoundError",
    "ServerError",
    "UnavailableError",
]

Name = Union[str, bytes]
Path = Union[str, "os.PathLike[str]"]
Progress = Callable[[int, int], object]
_T = TypeVar("_T")

_PATIENCE = 120.0  # seconds in which the server says or takes something
_WEIGHT_MAX = 100


class FileInfo(NamedTuple):
    """What the server says of a file. An `etag` of 0: not told, as in lists. A file has another one once it was written to."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    mtime_ns: int
    etag: int = 0


_KINDS: dict[int, Literal["file", "folder", "link", "other"]] = {
    wire.FILE: "file",
    wire.FOLDER: "folder",
    wire.LINK: "link",
}


class AsyncClient:
    """A client for asyncio, over a Context of the running loop; `async with` connects it. Calls take their turns, one at a
    time; for more at once there are more clients. A call that finds its connection ended makes another one.

    `patience`: seconds of a server that neither says nor takes anything, after which a call ends with DeadlineError.
    `weight`: shares to ask for, 1 to 100, while the server is short of slots, of those that it gives clients from here;
    0: all of those.
    Errors: ServerError for what the server says no to; errors of esdp for the connection; OSError for files of this side.

    A cancelled await ends within a second, with its connection; the next call connects anew. What get or put had moved by
    then is there for resume=True."""

    def __init__(
        self, context: aio.Context, address: aio.Address, *, patience: float = _PATIENCE, weight: int = 0
    ) -> None:
        self._context = context
        self._address = address
        self._patience = patience
        if not 0 <= weight <= _WEIGHT_MAX:
            raise ValueError(f"weight is {weight}, not 0 to {_WEIGHT_MAX}")
        self._weight = weight
        self._turn = asyncio.Lock()
        self._connection: Optional[Connection] = None

    async def connect(self) -> None:
        """Connects now, where it is not connected."""
        async with self._turn:
            await self._connected()

    async def close(self) -> None:
        """Ends the connection; a call that is under way ends with an error. Calls after it connect anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.socket.close("abort")

    async def stat(self, name: Name) -> FileInfo:
        """What the server says of a file or folder."""
        request = wire.Request(stat=wire.Stat(name=_bytes(name)))
        async with self._answer_to(request, name) as (_, answer):
            return _info(name, answer)

    async def list(self, name: Name = "") -> list[FileInfo]:
        """What is in a folder, by name; the root unless told."""
        found: list[FileInfo] = []
        cursor = 0
        while True:
            request = wire.Request(list=wire.List(name=_bytes(name), cursor=cursor))
            async with self._answer_to(request, name) as (_, answer):
                found += (_info(entry.name, entry) for entry in answer.entries)
                cursor = answer.cursor
            if cursor == 0:
                return sorted(found)

    async def read(
        self, name: Name, offset: int = 0, length: Optional[int] = None, *, check: bool = False, if_match: int = 0
    ) -> bytearray:
        """Bytes of a file, to its end unless told otherwise; fewer where it ends. `if_match`: the etag that it is to have."""
        if length == 0:
            return bytearray()
        get = wire.Get(name=_bytes(name), offset=offset, length=length or 0, chunk_crc=check, if_match=if_match)
        async with self._answer_to(wire.Request(get=get), name) as (connection, answer):
            extents = extents_of(answer, offset)
            if answer.sparse or (length is not None and answer.length > length):
                raise misbehaves("it answers with more than was asked for")
            target = bytearray(answer.length)
            if not extents:
                return target
            with self._context.register(target) as region:
                sink = MemorySink(connection, region, offset, check, _text(name))
                await receive(connection, extents, sink, _text(name), lambda _: None)
            return target

    async def get(
        self,
        name: Name,
        path: Path,
        *,
        resume: bool = False,
        check: bool = False,
        sync: bool = False,
        sha256: bool = False,
        progress: Optional[Progress] = None,
    ) -> FileInfo:
        """Fetches a file to a path. Its holes stay holes.

        `resume`: goes on where an earlier get of the same file to the same path has stopped; with `check` in both, behind
        the last chunk that still is as it was summed. `sha256`: that of the whole is compared with the server's, which sums
        beside the transfer; DamagedError. `sync`: on the medium before
        it ends. `progress(done, total)` is called with numbers of bytes, in this thread; what it raises ends the get.
        Errors: BusyError, somebody else fetches it to there."""
        path = os.fspath(path)
        part: Optional[PartFile] = None
        try:
            if sha256:
                await self._require_sums(name)
            get = wire.Get(name=_bytes(name), sparse=True, chunk_crc=check, whole_sha256=sha256)
            if resume:
                about = await self.stat(name)
                part = await in_thread(PartFile, path, about.etag, about.size, True, check)
                get.offset, get.if_match = part.offset, about.etag
            async with self._answer_to(wire.Request(get=get), name) as (connection, answer):
                if part is None:
                    part = await in_thread(PartFile, path, answer.etag, answer.size, False, check)
                await self._fetch(connection, answer, part, check, _text(name), progress)
                if sha256:
                    told = await connection.next_answer(_text(name), None)
                    if await in_thread(part.sha256) != told.sha256:
                        part.remove()
                        raise DamagedError(errno.EBADMSG, "the SHA-256 of what came differs", _text(name))
            await in_thread(part.finish, answer.mtime_ns, sync)
            return _info(name, answer)
        except ChangedError:
            if part is not None:
                part.remove()
            raise
        finally:
            if part is not None:
                part.close()

    async def _require_sums(self, name: Name) -> None:
        async with self._turn:
            if not (await self._connected()).features & wire.FEATURE_WHOLE_SHA256:
                raise refusal(wire.UNIMPLEMENTED, "the server does not tell the SHA-256 of files", _text(name))

    async def _fetch(
        self,
        connection: Connection,
        answer: wire.Answer,
        part: PartFile,
        check: bool,
        name: str,
        progress: Optional[Progress],
    ) -> None:
        moved = _Moved(progress, answer.size - answer.length, answer.size)  # holes count as there
        extents = extents_of(answer, part.offset)
        with contextlib.ExitStack() as stack:
            memory = stack.enter_context(chunk_memory(connection)) if check and extents else None
            await receive(connection, extents, file_sink(connection, part, memory, name), name, moved)

    async def put(
        self,
        path: Path,
        name: Name,
        *,
        resume: bool = False,
        check: bool = False,
        replace: bool = False,
        sync: bool = True,
        progress: Optional[Progress] = None,
    ) -> None:
        """Brings a file of this side; its holes stay holes. It has its name there when all of it has come.

        `resume`: goes on where an earlier put of the same file has stopped. `replace`: a file of that name gives way; else
        ExistsError. `sync`: on the medium there before it ends. `progress`: as of get. Errors: ChangedError, the file
        here was written to meanwhile; what is there then is of use to nobody."""
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            about = os.fstat(fd)
            if not _stat.S_ISREG(about.st_mode):
                raise make_error(ErrorKind.INVALID_ARGUMENT, errno.EINVAL, f"{os.fspath(path)}: not a plain file")
            put = wire.Put(name=_bytes(name), size=about.st_size, tag=_tag_of(about), resume=resume, chunk_crc=check)
            put.replace, put.sync = replace, wire.Put.SYNC_END if sync else wire.Put.SYNC_NONE
            extents = await in_thread(data_of, fd, about.st_size)
            put.sparse = sum(extent.length for extent in extents) < about.st_size
            if put.sparse:
                put.extents.extend(wire.Extent(offset=one.offset, length=one.length) for one in extents)
            async with self._answer_to(wire.Request(put=put), name) as (connection, answer):
                if answer.offset > about.st_size:
                    raise misbehaves("it wants what there is not")
                chunks = [chunk for chunk in chunks_of(extents) if chunk.offset >= answer.offset]
                moved = _Moved(progress, about.st_size - sum(chunk.length for chunk in chunks), about.st_size)
                await send(connection, fd, iter(chunks), check, _text(name), moved)
            if _tag_of(os.fstat(fd)) != _tag_of(about):
                raise ChangedError(errno.ESTALE, "the file was written to meanwhile", os.fspath(path))
        finally:
            os.close(fd)

    async def make_folder(self, name: Name) -> None:
        """Makes a folder there; one that is there is good. Errors: NotFoundError where what it is to be in is not there."""
        request = wire.Request(make_folder=wire.MakeFolder(name=_bytes(name)))
        async with self._answer_to(request, name):
            pass

    @contextlib.asynccontextmanager
    async def _answer_to(self, request: wire.Request, name: Name) -> AsyncIterator[tuple[Connection, wire.Answer]]:
        """The turn, and the connection for what follows the answer. With an error in between it is not used again."""
        async with self._turn:
            connection, answer = await self._ask(request, _text(name))
            try:
                yield connection, answer
            except BaseException:
                self._drop()
                raise

    async def _ask(self, request: wire.Request, name: str) -> tuple[Connection, wire.Answer]:
        is_new = self._connection is None
        connection = await self._connected()
        try:
            return connection, await connection.ask(request, name)
        except UnavailableError:
            self._drop()  # what it says to a client that is too many, or when it ends
            raise
        except ServerError:
            raise
        except ConnectionError:
            self._drop()
            if is_new:
                raise
        except BaseException:
            self._drop()
            raise
        # Servers end connections on which nobody asks for long, and end themselves.
        return await self._ask(request, name)

    async def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = await Connection.open(self._context, self._address, self._patience, self._weight)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.socket.abort()
            self._connection = None

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        await self.close()


class Client:
    """A client whose calls wait, with a Context of its own; `options` are those of esdp.Context. The calls, their arguments
    and errors are those of AsyncClient. Any thread may call, one at a time; not where an asyncio loop runs.

    Ctrl-C ends a call, and so does what `progress` raises."""

    def __init__(self, address: aio.Address, *, patience: float = _PATIENCE, weight: int = 0, **options: Any) -> None:
        self._turn = threading.Lock()
        self._task: Optional[asyncio.Task[Any]] = None
        self._cancelled = False
        self._closed = False
        self._runner = asyncio.Runner()
        try:
            self._client: AsyncClient = self._run(lambda: _open(address, patience, weight, options))
        except BaseException:
            self._closed = True
            self._runner.close()
            raise

    def stat(self, name: Name) -> FileInfo:
        """AsyncClient.stat."""
        return self._run(lambda: self._client.stat(name))

    def list(self, name: Name = "") -> list[FileInfo]:
        """AsyncClient.list."""
        return self._run(lambda: self._client.list(name))

    def read(
        self, name: Name, offset: int = 0, length: Optional[int] = None, *, check: bool = False, if_match: int = 0
    ) -> bytearray:
        """AsyncClient.read."""
        return self._run(lambda: self._client.read(name, offset, length, check=check, if_match=if_match))

    def get(
        self,
        name: Name,
        path: Path,
        *,
        resume: bool = False,
        check: bool = False,
        sync: bool = False,
        sha256: bool = False,
        progress: Optional[Progress] = None,
    ) -> FileInfo:
        """AsyncClient.get."""
        return self._run(
            lambda: self._client.get(
                name, path, resume=resume, check=check, sync=sync, sha256=sha256, progress=progress
            )
        )

    def put(
        self,
        path: Path,
        name: Name,
        *,
        resume: bool = False,
        check: bool = False,
        replace: bool = False,
        sync: bool = True,
        progress: Optional[Progress] = None,
    ) -> None:
        """AsyncClient.put."""
        self._run(
            lambda: self._client.put(
                path, name, resume=resume, check=check, replace=replace, sync=sync, progress=progress
            )
        )

    def make_folder(self, name: Name) -> None:
        """AsyncClient.make_folder."""
        self._run(lambda: self._client.make_folder(name))

    def cancel(self) -> None:
        """From another thread: the call that is under way ends with esdp.CancelledError, within a second. Without one,
        nothing."""
        task = self._task
        if task is not None:
            self._cancelled = True
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                task.get_loop().call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """Ends the connection. Waits for a call that is under way."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
            try:
                self._runner.run(_close(self._client))
            finally:
                self._runner.close()

    def _run(self, call: Callable[[], Awaitable[_T]]) -> _T:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("an event loop runs here: use esdp.files.AsyncClient")
        with self._turn:
            if self._closed:
                raise make_error(ErrorKind.BAD_HANDLE, errno.EBADF, "the client is closed")
            return self._runner.run(self._end_of(call))

    async def _end_of(self, call: Callable[[], Awaitable[_T]]) -> _T:
        self._cancelled = False
        self._task = asyncio.current_task()
        try:
            return await call()
        except asyncio.CancelledError:
            if not self._cancelled:
                raise  # Ctrl-C
            raise make_error(ErrorKind.CANCELLED, errno.ECANCELED, "as asked") from None
        finally:
            self._task = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, type: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()


async def _open(address: aio.Address, patience: float, weight: int, options: dict[str, Any]) -> AsyncClient:
    context = aio.Context(**options)
    client = AsyncClient(context, address, patience=patience, weight=weight)
    try:
        await client.connect()
    except BaseException:
        context.close()
        raise
    return client


async def _close(client: AsyncClient) -> None:
    await client.close()
    await client._context.aclose()


class _Moved:
    def __init__(self, progress: Optional[Progress], done: int, total: int) -> None:
        self._progress, self._done, self._total = progress, done, total
        self(0)

    def __call__(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)


def _bytes(name: Name) -> bytes:
    return os.fsencode(name)


def _text(name: Name) -> str:
    return os.fsdecode(name)


def _info(name: Name, about: Union[wire.Answer, wire.Entry]) -> FileInfo:
    etag = about.etag if isinstance(about, wire.Answer) else 0
    return FileInfo(_text(name), _KINDS.get(about.kind, "other"), about.size, about.mtime_ns, etag)


def _tag_of(about: os.stat_result) -> int:
    """Another number once the file is another one, or was written to."""
    facts = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    return int.from_bytes(hashlib.blake2b(repr(facts).encode(), digest_size=8).digest(), "big")
