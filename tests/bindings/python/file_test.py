"""Parts of files are sent and received, and an error tells how far it went."""

import asyncio
import errno
import os
import re
import resource

import esdp
import pytest
from aio_end_test import over, receive_and_say
from aio_test import on_a_pair
from conftest import LIMIT

SLOT = 256 * 1024


@pytest.fixture
def content():
    return os.urandom(3 * SLOT + 17)


@pytest.fixture
def source(tmp_path, content):
    (tmp_path / "source").write_bytes(content)
    with open(tmp_path / "source", "rb") as file:
        yield file


@pytest.fixture
def target(tmp_path):
    with open(tmp_path / "target", "w+b", buffering=0) as file:
        yield file


def test_parts_of_files_go_between_header_and_trailer_into_a_file(pair, source, target, content):
    memory = pair.context.register(bytearray(b"header" + b"trailer"))
    wanted = b"header" + content[5:] + content[:10] + b"trailer"
    for options in ({}, {"strategy": "plain"}, {"strategy": "direct"}, {"path": "copy", "complete_at": "delivered"}):
        pair.right.recv_file((target, 3, len(wanted)), pair.queue, "recv", sync="every", sync_every=SLOT)
        parts = [(source, 5, len(content) - 5), (source.fileno(), 0, 10)]
        pair.left.send_file(parts, pair.queue, "send", header=[memory[:6]], trailer=[memory[6:]], **options)
        events = {event.cookie: event.check() for event in pair.wait(2)}
        sent, received = events["send"], events["recv"]
        assert (sent.type, sent.bytes, sent.file_range, sent.file_offset) == ("sendfile", len(wanted), 1, 10)
        assert (received.type, received.bytes, received.file_offset) == ("recvfile", len(wanted), 3 + len(wanted))
        assert os.pread(target.fileno(), 2 * len(wanted), 3) == wanted
    memory.close()


def test_zeros_become_holes_where_asked_for(pair, target):
    wanted = b"x" * SLOT + bytes(4 * SLOT) + b"y"
    pair.right.recv_file((target, 0, len(wanted)), pair.queue, "recv", sparse=True)
    pair.left.send(pair.context.register(bytearray(wanted)), pair.queue, "send")
    assert {event.cookie: event.check().bytes for event in pair.wait(2)} == {"recv": len(wanted), "send": len(wanted)}
    assert os.pread(target.fileno(), 2 * len(wanted), 0) == wanted
    assert os.fstat(target.fileno()).st_blocks * 512 < 4 * SLOT


def test_what_the_page_cache_is_to_forget_is_read_by_threads(pair, source, target, content):
    pair.right.recv_file((target, 0, len(content)), pair.queue, "recv", sync="end", drop_behind=True)
    pair.left.send_file([(source, 0, len(content))], pair.queue, "send", drop_behind=True)
    assert {event.cookie: event.check().bytes for event in pair.wait(2)} == dict.fromkeys(("recv", "send"), len(content))
    assert os.pread(target.fileno(), 2 * len(content), 0) == content
    stats = pair.context.stats()
    assert (stats.file_bytes_cached, stats.file_bytes_read) == (0, len(content))


def test_a_file_that_ends_early_stops_with_the_exact_count(pair, source, content):
    pair.left.send_file([(source, 0, len(content) + 1)], pair.queue, "send", on_short="stop")
    received = bytearray(len(content))
    pair.right.recv(received, pair.queue, "recv", wait_all=True)
    events = {event.cookie: event for event in pair.wait(2)}
    assert events["send"].bytes == events["send"].file_offset == len(content) and received == content
    with pytest.raises(esdp.FileError) as raised:
        events["send"].check()
    assert raised.value.errno == errno.EIO and raised.value.kind == esdp.ErrorKind.FILE
    assert raised.value.event.file_offset == len(content)
    assert pair.move(b"and it goes on", bytearray(14)).ok


def test_a_file_that_ends_early_aborts_the_connection_unless_told_otherwise(pair, source, content):
    pair.right.recv(bytearray(len(content) + 1), pair.queue, "recv", wait_all=True)
    pair.left.send_file([(source, 0, len(content) + 1)], pair.queue, "send")
    events = {event.cookie: event for event in pair.wait(2)}
    assert isinstance(events["send"].error, esdp.FileError)
    assert isinstance(events["recv"].error, ConnectionResetError)


def test_a_file_that_may_not_grow_tells_how_far_it_was_written(pair, target, content):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    memory = pair.context.register(content)
    with pair.context.queue() as own:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SLOT + 1000, before[1]))
        try:
            pair.right.recv_file((target, 0, len(content)), own, reserve=False, on_short="stop")
            pair.left.send(memory, pair.queue)
            (event,) = own.get(timeout=LIMIT)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert isinstance(event.error, esdp.NoSpaceError) and event.error.errno == event.errno == errno.EFBIG
    assert event.file_offset == SLOT + 1000 <= event.bytes
    assert os.pread(target.fileno(), len(content), 0) == content[: SLOT + 1000]
    pair.left.close(mode="abort")
    pair.wait()
    memory.close()


@pytest.mark.parametrize("parts, error, text", [
    ([3], TypeError, "a part of a file is a tuple"),
    ([("name", 0, 1)], TypeError, "fileno"),
    ([(-1, 0, 1)], ValueError, "file descriptor"),
    ([(1 << 20, 0, 1)], esdp.InvalidArgumentError, "not open"),
    ([(0, -1, 1)], ValueError, r"an offset is an int from 0 to 2\^63 - 1, not -1"),
    ([(0, 0, "1")], TypeError, r"a length is an int from 0 to 2\^63 - 1, not str"),
    ([], esdp.InvalidArgumentError, "nothing to send"),
])
def test_what_is_no_part_of_a_file_is_refused_by_name(pair, parts, error, text):
    with pytest.raises(error, match=text):
        pair.left.send_file(parts, pair.queue)
    assert pair.queue.outstanding == 0


def test_words_and_memory_that_are_wrong_are_refused(pair, source, target, tmp_path):
    with pytest.raises(ValueError, match="strategy is 'bent'; there are: 'pipelined', 'plain', 'direct', 'mapped', 'spliced'"):
        pair.left.send_file([(source, 0, 1)], pair.queue, strategy="bent")
    for strategy in ("mapped", "spliced"):
        with pytest.raises(esdp.UnsupportedError, match="no fabric has regions"):
            pair.left.send_file([(source, 0, 1)], pair.queue, strategy=strategy)
    with pytest.raises(TypeError, match="registered memory"):
        pair.left.send_file([(source, 0, 1)], pair.queue, header=[b"copied"])
    with pytest.raises(ValueError, match="sync is 'some'; there are: 'none', 'end', 'every'"):
        pair.right.recv_file((target, 0, 1), pair.queue, sync="some")
    with pytest.raises(esdp.InvalidArgumentError, match="drop_behind"):
        pair.right.recv_file((target, 0, 1), pair.queue, drop_behind=True)
    with pytest.raises(ValueError, match="on_short is 'go on'"):
        pair.right.recv_file((target, 0, 1), pair.queue, on_short="go on")
    with open(tmp_path / "target", "ab") as appends:
        with pytest.raises(esdp.InvalidArgumentError, match="O_APPEND"):
            pair.right.recv_file((appends, 0, 1), pair.queue)


def test_a_file_is_held_until_its_event(pair, tmp_path, content):
    (tmp_path / "source").write_bytes(content)
    pair.left.send_file([(open(tmp_path / "source", "rb"), 0, len(content))], pair.queue, "send")
    received = bytearray(len(content))
    pair.right.recv(received, pair.queue, "recv", wait_all=True)
    for event in pair.wait(2):
        event.check()
    assert received == content


@on_a_pair
async def test_files_are_awaited(context, left, right):
    with open("/proc/self/exe", "rb") as source, open(os.memfd_create("target"), "w+b", buffering=0) as target:
        receiving = right.recv_file((target, 0, SLOT + 1), sync="end")
        assert await left.send_file([(source, 7, SLOT + 1)]) == SLOT + 1
        assert await receiving == SLOT + 1
        assert os.pread(target.fileno(), SLOT + 2, 0) == os.pread(source.fileno(), SLOT + 1, 7)


@on_a_pair
async def test_a_file_that_ends_early_raises_with_its_event(context, left, right):
    with open(os.memfd_create("source"), "w+b", buffering=0) as source:
        source.write(b"12345")
        receiving = right.recv(bytearray(5), wait_all=True)
        with pytest.raises(esdp.FileError, match=re.compile("ends before")) as raised:
            await left.send_file([(source, 1, 100)], on_short="stop")
        assert (raised.value.event.bytes, raised.value.event.file_offset) == (4, 5)
        await left.sendall(b"6")
        assert await receiving == 5


async def cancel_a_receive_that_took(data, context, left, right):
    task = asyncio.ensure_future(receive_and_say(right, bytearray(len(data) + 2), []))
    await asyncio.sleep(0)
    sending = left.send(data)
    await over(context)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await sending


@on_a_pair
async def test_what_a_cancelled_receive_took_comes_first_into_the_file(context, left, right):
    await cancel_a_receive_that_took(b"01234567", context, left, right)
    with open(os.memfd_create("target"), "w+b", buffering=0) as target:
        assert await right.recv_file((target, 0, 5), sync="end") == 5
        last = right.recv_file((target, 5, 10))
        await left.sendall(b"89abcde")
        assert await last == 10
        assert os.pread(target.fileno(), 20, 0) == b"0123456789abcde"


@on_a_pair
async def test_what_is_refused_is_refused_also_where_all_bytes_are_those_of_a_cancelled_receive(context, left, right):
    await cancel_a_receive_that_took(b"01234567", context, left, right)
    with open(os.memfd_create("target"), "w+b", buffering=0) as target, open("/dev/null", "wb", buffering=0) as device:
        for text, part, options in [
            ("drop_behind", (target, 0, 4), {"drop_behind": True}),
            ("sync_every", (target, 0, 4), {"sync": "every", "sync_every": 0}),
            ("length", (target, 0, 0), {}),
            ("regular", (device, 0, 4), {}),
        ]:
            with pytest.raises(esdp.InvalidArgumentError, match=text):
                await right.recv_file(part, **options)
        with pytest.raises(ValueError, match="sync is 'some'; there are: 'none', 'end', 'every'"):
            await right.recv_file((target, 0, 4), sync="some")
        assert os.pread(target.fileno(), 1, 0) == b""
        # Nothing was lost of what had come.
        assert await right.recv_file((target, 0, 8), sync="end", drop_behind=True) == 8
        assert os.pread(target.fileno(), 10, 0) == b"01234567"


@on_a_pair
async def test_a_cancelled_file_tells_how_far_it_came(context, left, right):
    with open(os.memfd_create("target"), "w+b", buffering=0) as target:
        receiving = right.recv_file((target, 0, 100))
        await left.send(b"0123456789")
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await receiving
        event = raised.value.args[0]
        assert event.file_offset == event.bytes
        assert os.pread(target.fileno(), 100, 0) == b"0123456789"[: event.bytes]
