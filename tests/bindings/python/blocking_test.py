"""Stream: calls that block, on memory that nobody registered."""

import contextlib
import errno
import os
import re
import select
import signal
import socket
import threading
import time

import esdp
import pytest
from conftest import FABRICS, LIMIT, nobody_listens

LARGE = 3_000_000  # some chunks that are registered
SHORT = 0.05


def pattern(length):
    return (bytes(range(251)) * (length // 251 + 1))[:length]


class Streams:
    """`left` connected to `right`, which have a Context in common."""

    def __init__(self, fabric, **options):
        self.context = esdp.Context(fabric=fabric)
        with esdp.StreamListener.listen(self.context, "127.0.0.1:0") as listener:
            self.left = esdp.Stream.connect(self.context, listener.local, **options)
            self.right = listener.accept(timeout=LIMIT, **options)

    def end(self):
        self.left.abort()
        self.right.abort()
        self.context.close()


def connected_tcp():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname(), timeout=LIMIT)
        return client, listener.accept()[0]


class beside:
    """A call in a thread of its own."""

    def __init__(self, call):
        self.answer = self.error = None
        self.thread = threading.Thread(target=self.run, args=(call,))
        self.thread.start()

    def run(self, call):
        try:
            self.answer = call()
        except BaseException as error:
            self.error = error

    def result(self):
        self.thread.join(LIMIT)
        assert not self.thread.is_alive(), "the call is not over"
        if self.error is not None:
            raise self.error
        return self.answer


# In the simulator the time of a wait passes at once where nothing is under way: threads that wait for each other need the
# real time of qpip.
@pytest.fixture(params=FABRICS)
def streams(request):
    streams = Streams(request.param)
    yield streams
    streams.end()


@pytest.fixture
def on_qpip():
    streams = Streams("qpip")
    yield streams
    streams.end()


# --- bytes ---


@pytest.mark.parametrize("length", [1, 5000, LARGE])
def test_what_is_written_is_read_and_nothing_stays_registered(on_qpip, length):
    sent, target = pattern(length), bytearray(length)
    reading = beside(lambda: on_qpip.right.read_into(target, length))
    assert on_qpip.left.write(sent) == length
    assert reading.result() == length and target == sent
    stats = on_qpip.left.stats()
    assert stats.registered_now == 0 and stats.socket.bytes_sent_copied + stats.socket.bytes_sent_zero_copy == length
    assert (stats.asdict()["registrations"] > 0) == (length == LARGE)


def test_what_the_send_buffer_takes_needs_no_reader(streams):
    assert streams.left.write(pattern(50_000)) == 50_000
    target = bytearray(50_000)
    assert streams.right.read_into(target, 50_000) == 50_000 and target == pattern(50_000)


def test_read_gives_what_is_here_and_at_the_end_nothing(streams):
    assert streams.left.write(b"some") == 4
    assert streams.right.read(100, 4) == b"some"
    streams.left.shutdown_write()
    assert streams.right.read(100) == b"" and streams.right.read_into(bytearray(10), 10) == 0
    with pytest.raises(BrokenPipeError):
        streams.left.write(b"more")
    assert streams.right.write(b"the other way") == 13
    assert streams.left.read(13, 13, timeout=LIMIT) == b"the other way"


def test_a_read_of_a_minimum_gives_less_only_at_the_end(on_qpip):
    reading = beside(lambda: on_qpip.right.read(10, 10))
    on_qpip.left.write(b"123")
    on_qpip.left.write(b"456")
    on_qpip.left.shutdown_write()
    assert reading.result() == b"123456"


def test_nothing_is_asked_for_and_nothing_comes(streams):
    assert streams.right.read(0) == b"" and streams.right.read_into(bytearray()) == 0
    assert streams.left.write(b"") == 0 and streams.left.writev([]) == 0


def test_pieces_go_one_after_the_other(streams):
    assert streams.left.writev([b"ab", bytearray(b"cd"), b"", memoryview(b"xefx")[1:3]]) == 6
    assert streams.right.read(6, 6) == b"abcdef"


def test_a_peek_leaves_the_bytes_where_they_are(streams):
    streams.left.write(b"look")
    assert streams.right.read(4, 4, peek=True) == b"look"
    streams.left.write(b"ing")
    assert streams.right.read(7, 7, peek=True) == b"looking"
    assert streams.right.read(3, 3) == b"loo" and streams.right.read(10, 4) == b"king"
    streams.left.write(b"end")
    streams.left.shutdown_write()
    assert streams.right.read(10, 10, peek=True) == b"end" and streams.right.read(10, 10) == b"end"


def test_registered_memory_is_written_without_a_registration(on_qpip):
    with on_qpip.context.allocate(LARGE) as region:
        region.view()[:] = pattern(LARGE)
        target = bytearray(LARGE - 10)
        reading = beside(lambda: on_qpip.right.read_into(target, len(target)))
        assert on_qpip.left.write(region[5:-5]) == LARGE - 10
        assert reading.result() == LARGE - 10 and target == pattern(LARGE)[5:-5]
    assert on_qpip.left.stats().registrations == 0


def test_the_path_of_a_write_is_asked_for_by_word(on_qpip):
    reading = beside(lambda: on_qpip.right.read(LARGE, LARGE))
    on_qpip.left.write(pattern(LARGE), path="copy")
    assert reading.result() == pattern(LARGE) and on_qpip.left.stats().socket.bytes_sent_zero_copy == 0
    with pytest.raises(ValueError, match="'copy'"):
        on_qpip.left.write(b"x", path="teleport")


def test_an_urgent_byte_is_announced(streams):
    streams.left.write(b"now!", urgent=True)
    assert streams.right.read(4, 4) == b"now!"
    assert streams.left.stats().socket.urgent_sent == 1


def test_memory_that_cannot_be_used_is_refused(streams):
    with pytest.raises(TypeError, match="read-only"):
        streams.right.read_into(b"bytes")
    with pytest.raises(TypeError):
        streams.left.write("text")
    with pytest.raises(BufferError):
        streams.left.write(memoryview(b"abcdef")[::2])
    with pytest.raises(ValueError, match="min"):
        streams.right.read(5, 6)
    with pytest.raises((TypeError, OverflowError)):
        streams.right.read(-1)


# --- not to wait, and time ---


def test_what_is_not_to_wait_would_block(streams):
    with pytest.raises(esdp.WouldBlockError) as raised:
        streams.right.read(10, wait=False)
    assert raised.value.errno == errno.EAGAIN and isinstance(raised.value, BlockingIOError)
    with pytest.raises(BlockingIOError):
        for _ in range(1000):
            assert streams.left.write(bytes(100_000), wait=False) > 0
    assert not streams.left.readiness.readable
    assert streams.right.read(1, 1, timeout=LIMIT) == b"\0" and streams.right.readiness.readable


def test_a_late_call_is_a_timeout_error_where_nothing_has_moved(streams):
    begun = streams.context.now()
    with pytest.raises(TimeoutError):
        streams.right.read(10, timeout=SHORT)
    with pytest.raises(TimeoutError):
        streams.right.read(10, 10, peek=True, timeout=SHORT)
    assert streams.context.now() - begun >= 2 * SHORT
    streams.left.write(b"part")
    assert streams.right.read(10, 10, timeout=0.3) == b"part"
    taken = streams.left.write(bytes(20_000_000), timeout=0.3)
    assert 0 < taken < 20_000_000
    with pytest.raises(ValueError, match="negative"):
        streams.right.read(1, timeout=-1)


def test_nobody_comes_and_nobody_answers(request):
    for fabric in FABRICS:
        with esdp.Context(fabric=fabric) as context:
            with esdp.StreamListener.listen(context, "127.0.0.1:0") as listener:
                with pytest.raises(TimeoutError):
                    listener.accept(timeout=SHORT)
    with esdp.Context(fabric="qpip") as context, nobody_listens() as address:
        with pytest.raises(ConnectionRefusedError):
            esdp.Stream.connect(context, address, timeout=LIMIT)


# --- threads and signals ---


def test_other_threads_run_and_a_buffer_is_held_while_a_call_waits(on_qpip):
    target = bytearray(10)
    reading = beside(lambda: on_qpip.right.read_into(target, timeout=LIMIT))
    deadline = time.monotonic() + LIMIT
    held = False
    while not held and time.monotonic() < deadline:
        try:
            target.append(1)
            target.pop()
        except BufferError:
            held = True
    assert held, "the buffer could change its size during the call"
    on_qpip.left.write(b"x")
    assert reading.result() == 1
    target.append(1)


@pytest.mark.parametrize("end", [
    lambda stream: stream.close(wait=False),
    lambda stream: stream.abort(),
    lambda stream: stream.close(timeout=SHORT),
])
def test_who_waits_is_sent_home_by_an_end_in_another_thread(on_qpip, end):
    reading = beside(lambda: on_qpip.right.read(10))
    writing = beside(lambda: on_qpip.right.write(bytes(50_000_000)))
    time.sleep(SHORT)
    with contextlib.suppress(TimeoutError):
        end(on_qpip.right)
    with pytest.raises(OSError):
        reading.result()
    with contextlib.suppress(OSError):
        assert writing.result() < 50_000_000
    assert on_qpip.right.closed
    with pytest.raises(OSError):
        on_qpip.right.read(1)


def test_who_accepts_is_sent_home_by_a_close(on_qpip):
    listener = esdp.StreamListener.listen(on_qpip.context, "127.0.0.1:0")
    accepting = beside(listener.accept)
    time.sleep(SHORT)
    listener.close()
    with pytest.raises(BrokenPipeError):
        accepting.result()


def test_a_context_that_closes_sends_home_who_waits(on_qpip):
    reading = beside(lambda: on_qpip.right.read(10))
    time.sleep(SHORT)
    with contextlib.suppress(TimeoutError):
        on_qpip.context.close(timeout=SHORT)
    with pytest.raises(OSError):
        reading.result()
    with pytest.raises(esdp.BadHandleError):
        on_qpip.left.write(b"x")


def while_a_handler_runs(handler, call):
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, SHORT)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_handler_runs_while_a_read_goes_on(on_qpip):
    given = while_a_handler_runs(lambda *_: on_qpip.left.write(b"later"), lambda: on_qpip.right.read(5, 5))
    assert given == b"later"


def test_a_write_that_a_handler_interrupts_writes_each_byte_once(on_qpip):
    target, sent = bytearray(20_000_000), pattern(20_000_000)
    reading = []

    def begin_to_read(*_):
        reading.append(beside(lambda: on_qpip.right.read_into(target, len(target))))

    assert while_a_handler_runs(begin_to_read, lambda: on_qpip.left.write(sent)) == len(sent)
    assert reading[0].result() == len(sent) and target == sent


@pytest.mark.parametrize("call", [
    lambda streams: streams.right.read(10),
    lambda streams: streams.left.write(bytes(50_000_000)),
    lambda streams: esdp.StreamListener.listen(streams.context, "127.0.0.1:0").accept(),
    lambda streams: streams.left.close(timeout=LIMIT),
], ids=["read", "write", "accept", "close"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_exception_of_a_handler_ends_a_call(on_qpip, call):
    begun = time.monotonic()
    threading.Timer(SHORT, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        call(on_qpip)
    assert time.monotonic() - begun < LIMIT / 2


# --- the end ---


def test_a_close_waits_for_the_peer(on_qpip):
    on_qpip.left.write(b"last words")
    closing = beside(lambda: on_qpip.left.close(timeout=LIMIT))
    assert on_qpip.right.read(20, 10) == b"last words" and on_qpip.right.read(1) == b""
    on_qpip.right.close(timeout=LIMIT)
    closing.result()
    assert on_qpip.left.closed and repr(on_qpip.left).endswith("closed>")
    on_qpip.left.close()


def test_a_close_that_does_not_wait_delivers_what_was_written(streams):
    left, streams.left = streams.left, streams.right
    with left:
        left.write(b"a" * 500_000)
    del left  # nothing holds it any more
    assert streams.right.read(600_000, 600_000) == b"a" * 500_000
    streams.right.close(timeout=LIMIT)


def test_a_peer_that_does_not_end_is_aborted_at_the_time(on_qpip):
    on_qpip.left.write(b"unread")
    with pytest.raises(TimeoutError):
        on_qpip.left.close(timeout=SHORT)


def test_an_abort_is_a_reset_to_the_peer(streams):
    streams.left.abort()
    with pytest.raises(ConnectionResetError):
        streams.right.read(10, timeout=LIMIT)
    assert streams.right.readiness.failed


def test_a_with_that_an_error_leaves_aborts(streams):
    with pytest.raises(ZeroDivisionError):
        with streams.left:
            raise ZeroDivisionError
    with pytest.raises(ConnectionResetError):
        streams.right.read(10, timeout=LIMIT)


def test_what_is_dropped_open_is_told_and_ended():
    streams = Streams("qpip")
    listener = esdp.StreamListener.listen(streams.context, "127.0.0.1:0")
    with pytest.warns(ResourceWarning, match="unclosed esdp.StreamListener"):
        del listener
    with pytest.warns(ResourceWarning, match="unclosed esdp.Stream"):
        streams.left = None
    with pytest.raises(ConnectionResetError):
        streams.right.read(10, timeout=LIMIT)
    streams.right.abort()
    streams.context.close()


# --- what it is made of ---


def test_a_socket_becomes_a_stream(pair):
    with esdp.Stream.of(pair.left, chunk_bytes=8192) as left, esdp.Stream.of(pair.right) as right:
        assert pair.left.closed and left.options["chunk_bytes"] == 8192
        left.write(b"as before")
        assert right.read(20, 9) == b"as before"
        with pytest.raises(esdp.BadHandleError):
            esdp.Stream.of(pair.left)


def test_a_socket_that_is_not_connected_becomes_none(context):
    with pytest.raises(esdp.WrongStateError):
        esdp.Stream.of(context.socket())


def test_both_ends_name_the_connection(streams):
    assert streams.left.local == streams.right.peer and streams.left.peer == streams.right.local
    assert streams.left.transport in ("qpip", "sim") and repr(streams.left).startswith("<esdp.Stream ")


def test_a_stream_comes_from_the_address_that_is_told():
    with esdp.Context(fabric="qpip") as context, esdp.StreamListener.listen(context, "127.0.0.1:0") as listener:
        connecting = beside(lambda: esdp.Stream.connect(context, listener.local, local=("127.0.0.3", 0)))
        with listener.accept(timeout=LIMIT) as accepted, connecting.result():
            assert accepted.peer[0] == "127.0.0.3"


def test_options_are_read_back_and_wrong_ones_refused(streams):
    assert (streams.left.options["chunk_bytes"], streams.left.options["chunks_max"]) == (None, None), "by the fabric"
    streams.left.set_options(chunk_bytes=4096, patience=0.5, zcopy_min=None)
    streams.left.set_options(chunks_max=2)
    assert streams.left.options == {
        "zcopy_min": None, "chunk_bytes": 4096, "chunks_max": 2, "send_buffer_bytes": 1 << 20, "patience": 0.5
    }
    streams.left.set_option("zcopy_send_min", 1000)
    assert streams.left.get_option("zcopy_send_min") == 1000
    for wrong, error in (({"chunks_max": 99}, ValueError), ({"chunk": 1}, TypeError), ({"patience": "x"}, TypeError)):
        with pytest.raises(error):
            streams.left.set_options(**wrong)
    assert streams.left.options["chunk_bytes"] == 4096
    streams.left.set_options(chunk_bytes=None, chunks_max=None)
    assert (streams.left.options["chunk_bytes"], streams.left.options["chunks_max"]) == (None, None)


def test_the_readiness_tells_what_a_call_would_find(streams):
    streams.left.write(b"12345")
    assert streams.right.read(1, 1, timeout=LIMIT) == b"1"
    now = streams.right.readiness
    assert (now.readable, now.bytes, now.failed) == (True, 4, False) and streams.left.readiness.writable


def members_of(structure):
    with open("api/esdp/stream_values.h", encoding="utf-8") as file:
        text = re.sub(r"//.*", "", file.read())
    body = re.search(r"struct %s \{(.*?)\n\};" % structure, text, re.S).group(1)
    return re.findall(r"(\w+) *(?:=[^;]*)?;", body)


def test_every_member_of_the_header_is_there(streams):
    assert ["socket", *esdp.StreamStats._fields] == members_of("StreamStats")
    assert all(hasattr(streams.left.readiness, name) for name in members_of("StreamReadiness"))
    # Handlers of signals run during each call, and urgent bytes are among the others.
    assert [*streams.left.options, "restart_on_signal", "urgent"] == members_of("StreamOptions")


def test_what_is_no_context_or_socket_is_refused():
    for wrong in (None, 3):
        with pytest.raises(TypeError):
            esdp.Stream.connect(wrong, "127.0.0.1:1")
        with pytest.raises(TypeError):
            esdp.StreamListener.listen(wrong, "127.0.0.1:0")
        with pytest.raises(TypeError):
            esdp.Stream.of(wrong)


@pytest.mark.parametrize("type", [esdp.Stream, esdp.StreamListener, esdp.StreamReadiness, esdp.StreamStats])
def test_none_is_made_but_by_a_context(type):
    with pytest.raises(TypeError, match="No constructor"):
        type()


def test_a_wait_lasts_longer_than_one_of_its_tries(on_qpip):
    later = 0.8  # a try lasts half a second
    reading = beside(lambda: on_qpip.right.read(9, 9, timeout=LIMIT))
    with esdp.StreamListener.listen(on_qpip.context, "127.0.0.1:0") as listener:
        accepting = beside(listener.accept)
        writing = beside(lambda: on_qpip.right.write(pattern(20_000_000)))
        time.sleep(later)
        on_qpip.left.write(b"after all")
        assert reading.result() == b"after all"
        with esdp.Stream.connect(on_qpip.context, listener.local), accepting.result():
            assert on_qpip.left.read(20_000_000, 20_000_000) == pattern(20_000_000)
        assert writing.result() == 20_000_000


# --- sockets of the system ---


def test_a_stream_goes_over_a_connected_socket_of_the_system():
    with esdp.Context(fabric="qpip") as context:
        client, server = connected_tcp()
        accepting = beside(lambda: esdp.Stream.over(context, server, accepts=True, timeout=LIMIT))
        left = esdp.Stream.over(context, client.fileno(), timeout=LIMIT)
        right = accepting.result()
        client.close()
        server.close()
        with left, right:
            assert left.peer == right.local and left.transport == "qpip"
            data = pattern(LARGE)
            writing = beside(lambda: left.write(data))
            target = bytearray(LARGE)
            assert right.read_into(target, LARGE, timeout=LIMIT) == LARGE
            assert writing.result() == LARGE and target == data


def test_what_is_no_connected_socket_is_refused():
    with esdp.Context(fabric="qpip") as context:
        with socket.socket() as unconnected, pytest.raises(ValueError, match="no connected TCP socket"):
            esdp.Stream.over(context, unconnected)
        with pytest.raises(TypeError, match="fileno"):
            esdp.Stream.over(context, "127.0.0.1:80")
        client, server = connected_tcp()
        with client, server:
            server.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian, and more of it\r\n")
            with pytest.raises(esdp.PeerProtocolError):
                esdp.Stream.over(context, client, timeout=LIMIT)
        client, server = connected_tcp()
        with client, server, pytest.raises(TimeoutError):
            esdp.Stream.over(context, server, accepts=True, timeout=SHORT)
    with esdp.Context(fabric="sim:1") as context, socket.socket() as any_one:
        with pytest.raises(esdp.UnsupportedError, match="qpip"):
            esdp.Stream.over(context, any_one)


def test_the_descriptor_shows_what_could_be_done():
    streams = Streams("qpip")
    poller = select.poll()
    poller.register(streams.left, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
    assert poller.poll(0) == [(streams.left.fileno(), select.POLLOUT)]
    streams.right.write(b"12345")
    poller.modify(streams.left, select.POLLIN | select.POLLRDHUP)
    assert poller.poll(1000 * LIMIT) == [(streams.left.fileno(), select.POLLIN)]
    assert streams.left.read(100, wait=False) == b"12345"
    assert poller.poll(0) == []
    streams.right.shutdown_write()
    assert poller.poll(1000 * LIMIT)[0][1] & select.POLLRDHUP
    streams.end()
