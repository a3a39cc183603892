"""Transfers of esdp.aio that are more than one operation: they wait for room, and for their turn."""

from __future__ import annotations

import asyncio
import collections
import errno
import fcntl
import os
import stat
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

from esdp import _core
from esdp._errors import ErrorKind, WindowFullError, make_error
from esdp._operations import Later, Operation, first_bytes, hear

if TYPE_CHECKING:
    from esdp.aio import Socket, _OnCancel

_COPIED_AT_ONCE = 64 * 1024  # of memory that is not registered
_REST = 0.001  # seconds between two looks for room


async def send_all(socket: Socket, view: memoryview, on_cancel: _OnCancel) -> None:
    """Copies piece by piece. When one fails, or the await is cancelled, those after it are taken back before it, so that
    the stream has no hole."""
    sent: collections.deque[asyncio.Future[int]] = collections.deque()
    try:
        while len(view) > 0:
            try:
                sent.append(socket.send(view[:_COPIED_AT_ONCE], on_cancel=on_cancel))
                view = view[_COPIED_AT_ONCE:]
            except WindowFullError:
                if not sent:
                    await asyncio.sleep(_REST)
                    continue
                await asyncio.wait([sent[0]])
                sent.popleft().result()
        while sent:
            await asyncio.wait([sent[0]])
            sent.popleft().result()
    except BaseException:
        for future in reversed(sent):
            future.add_done_callback(hear)
            future.cancel()
        if sent:
            await asyncio.wait(sent)
        raise


async def receive_all(socket: Socket, target: Any, on_cancel: _OnCancel) -> None:
    """Fills the target, or raises IncompleteReadError at the end of the stream."""
    registered = isinstance(target, (_core.Region, _core.Slice))
    rest = target if registered else memoryview(target).cast("B")
    expected, count, first = len(rest), 0, None
    while count < expected:
        piece = rest[count:] if registered else rest[count : count + _COPIED_AT_ONCE]
        try:
            receiving = socket.recv(piece, wait_all=True, on_cancel=on_cancel)
            received = await receiving
        except BaseException:
            if first is not None:
                socket._unread.give_back(first, first_bytes([target], count))
            raise
        count, first = count + received, first or receiving._place
        if received < len(piece):
            raise asyncio.IncompleteReadError(first_bytes([target], count), expected)


def receive_later(
    socket: Socket, targets: Sequence[Any], timeout: Optional[float], options: dict[str, Any]
) -> Operation:
    """A receive that cannot be posted now: others come before it, or there is no room, or bytes wait for it that a
    cancelled one took."""
    loop = asyncio.get_running_loop()
    later = Later(loop=loop)
    task = loop.create_task(_receive_in_turn(later, socket, socket._line, list(targets), timeout, options))
    later.follow(task, (targets, socket._unread))
    return _stand_in_line(later, socket)


def receive_file_later(
    socket: Socket, target: Tuple[Any, int, int], timeout: Optional[float], options: dict[str, Any]
) -> Operation:
    """The same into a file. What the post would refuse is refused here: there may be none."""
    _check_sink(target, options)
    loop = asyncio.get_running_loop()
    later = Later(loop=loop)
    later.follow(loop.create_task(_receive_file_in_turn(socket, socket._line, target, timeout, options)), None)
    return _stand_in_line(later, socket)


def _stand_in_line(later: Later, socket: Socket) -> Operation:
    socket._line = later

    def leave(done: asyncio.Future[int]) -> None:
        if socket._line is done:
            socket._line = None

    later.add_done_callback(leave)
    return later


async def _receive_in_turn(
    later: Later,
    socket: Socket,
    before: Optional[asyncio.Future[int]],
    targets: List[Any],
    timeout: Optional[float],
    options: dict[str, Any],
) -> int:
    left = _time_left(timeout)
    await _wait_for(before, left)
    count, rest = _move_unread(later, socket, targets)
    if not rest or (count > 0 and not options["wait_all"]):
        return count
    try:
        receiving = await _post_when_there_is_room(socket, rest, left, options)
        if count == 0:
            later._place = receiving._place
        return count + int(await receiving)
    except BaseException:
        if count > 0:
            socket._unread.give_back(later._place, first_bytes(targets, count))
        raise


async def _wait_for(before: Optional[asyncio.Future[int]], left: Callable[[], Optional[float]]) -> None:
    while before is not None and not before.done():
        await asyncio.wait([before], timeout=left())


async def _receive_file_in_turn(
    socket: Socket,
    before: Optional[asyncio.Future[int]],
    target: Tuple[Any, int, int],
    timeout: Optional[float],
    options: dict[str, Any],
) -> int:
    left = _time_left(timeout)
    await _wait_for(before, left)
    file, offset, length = target
    descriptor = _descriptor_of(file)
    count = _write_unread(socket, descriptor, offset, length)
    if count < length:
        return count + int(await socket._receive_file((file, offset + count, length - count), left(), **options))
    if options["sync"] != "none":
        await asyncio.get_running_loop().run_in_executor(None, _sync, descriptor, offset, length, options["drop_behind"])
    return count


def _sync(descriptor: int, offset: int, length: int, drop_behind: bool) -> None:
    os.fdatasync(descriptor)
    if drop_behind:
        os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)


def _descriptor_of(file: Any) -> int:
    return file if isinstance(file, int) else int(file.fileno())


def _check_sink(target: Tuple[Any, int, int], options: dict[str, Any]) -> None:
    file, offset, length = target
    for name, words in (("sync", ("none", "end", "every")), ("on_short", ("abort", "stop"))):
        if options[name] not in words:
            raise ValueError(f"{name} is {options[name]!r}; there are: {', '.join(map(repr, words))}")
    if offset < 0 or length < 0:
        raise ValueError("offsets and lengths of files are 0 or more")
    flags = fcntl.fcntl(_descriptor_of(file), fcntl.F_GETFL)
    refused = None
    if length == 0:
        refused = "the length is 0"
    elif options["sync"] == "every" and options["sync_every"] == 0:
        refused = "sync_every is 0"
    elif options["drop_behind"] and options["sync"] == "none":
        refused = "drop_behind is for what is on the medium, so with sync='end' or 'every'"
    elif not stat.S_ISREG(os.fstat(_descriptor_of(file)).st_mode) or flags & os.O_ACCMODE == os.O_RDONLY:
        refused = "the file is not a regular one that can be written"
    elif flags & (os.O_APPEND | os.O_DIRECT | os.O_PATH):
        refused = "the file was opened with O_APPEND, O_DIRECT or O_PATH"
    if refused is not None:
        raise make_error(ErrorKind.INVALID_ARGUMENT, errno.EINVAL, refused)


def _write_unread(socket: Socket, descriptor: int, offset: int, length: int) -> int:
    """What cancelled receives took, and come first."""
    count = 0
    while count < length:
        part = memoryview(bytearray(min(_COPIED_AT_ONCE, length - count)))
        moved, place = socket._unread.move_to(part)
        if place is None:
            break
        written = 0
        try:
            while written < moved:
                written += os.pwrite(descriptor, part[written:moved], offset + count + written)
        except OSError:
            socket._unread.give_back(place, bytes(part[:moved]))
            raise
        count += moved
    return count


async def _post_when_there_is_room(
    socket: Socket, targets: List[Any], left: Callable[[], Optional[float]], options: dict[str, Any]
) -> Operation:
    while True:
        try:
            return socket._receive(targets, left(), **options)
        except WindowFullError:
            await asyncio.sleep(_REST)


def _move_unread(later: Later, socket: Socket, targets: Sequence[Any]) -> Tuple[int, List[Any]]:
    """How many bytes were there, and the memory behind them."""
    count = 0
    for number, target in enumerate(targets):
        view = memoryview(target).cast("B")
        moved, place = socket._unread.move_to(view)
        if count == 0 and place is not None:
            later._place = place
        count += moved
        if moved < len(view):
            rest = target if isinstance(target, (_core.Region, _core.Slice)) else view
            return count, [rest[moved:], *targets[number + 1 :]]
    return count, []


def _time_left(timeout: Optional[float]) -> Callable[[], Optional[float]]:
    """Tells what is left of it; raises when that is nothing."""
    now = asyncio.get_running_loop().time
    end = None if timeout is None else now() + timeout

    def left() -> Optional[float]:
        if end is not None and end <= now():
            raise make_error(ErrorKind.DEADLINE_EXCEEDED, errno.ETIMEDOUT, "its deadline came before its turn")
        return None if end is None else end - now()

    return left

