"""What is sent arrives, whole and in order, and each operation ends with one event."""

import threading
import time

import esdp
import pytest
from conftest import LIMIT, Pair
from hypothesis import given
from hypothesis import strategies as draw


def pattern(length):
    return (bytes(range(251)) * (length // 251 + 1))[length % 251 :][:length]


@given(
    pieces=draw.lists(draw.binary(min_size=1, max_size=3000) | draw.integers(60_000, 140_000), min_size=1, max_size=8),
    room=draw.integers(2_000, 90_000),
    fabric=draw.sampled_from(["qpip", "sim:3"]),
)
def test_any_stream_arrives_byte_for_byte(pieces, room, fabric):
    """An integer stands for so many bytes from registered memory."""
    pair = Pair(fabric)
    kept = [pair.context.register(pattern(piece)) if isinstance(piece, int) else piece for piece in pieces]
    sent = b"".join(bytes(piece) for piece in kept)
    received = bytearray()
    with pair.context.allocate(room) as target:
        pair.right.recv(target, pair.queue, "recv")
        for piece in kept:
            pair.left.send(piece, pair.queue, "send")
        pair.left.shutdown(pair.queue, "shutdown")
        ended = []
        while "eof" not in ended:
            for event in pair.wait():
                ended.append(event.check().cookie)
                if event.cookie == "recv":
                    assert event.stream_offset == len(received)
                    received += memoryview(target)[: event.bytes]
                    if event.eof:
                        ended.append("eof")
                    else:
                        pair.right.recv(target, pair.queue, "recv")
        while pair.queue.outstanding:
            ended += [event.check().cookie for event in pair.wait()]
    assert received == sent
    assert ended.count("send") == len(pieces) and ended.count("shutdown") == 1
    for piece in kept:
        if isinstance(piece, esdp.Region):
            piece.close()
    pair.close()


def test_an_event_tells_all_about_its_operation(pair):
    cookie = ["anything"]
    operation = pair.left.send(b"12345", pair.queue, cookie)
    event = pair.wait()[0]
    assert event.ok and event.terminal and event.error is None and event.errno == 0
    assert (event.type, event.bytes, event.cookie is cookie) == ("send", 5, True)
    assert event.op == operation and hash(event.op) == hash(operation)
    assert event.socket is pair.left
    assert event.check() is event


def test_an_accept_of_several_goes_on(pair):
    with pair.context.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        operation = listener.accept(pair.queue, count=0, cookie="accept")
        for _ in range(3):
            with pair.context.socket() as client:
                client.connect(listener.local, pair.queue, "connect")
                events = {event.cookie: event.check() for event in pair.wait(2)}
                assert events["accept"].more and not events["accept"].terminal
                with pair.context.take_accepted(events["accept"]) as server:
                    assert server.peer == client.local == events["accept"].accepted_peer
        assert operation.cancel()
        assert pair.wait()[0].cancelled
        assert not operation.cancel()


def test_a_taken_connection_is_not_taken_twice(pair):
    with pair.context.socket() as listener, pair.context.socket() as client:
        listener.bind("127.0.0.1:0")
        listener.listen()
        listener.accept(pair.queue, cookie="accept")
        client.connect(listener.local, pair.queue)
        accepted = [event for event in pair.wait(2) if event.cookie == "accept"][0]
        with pair.context.take_accepted(accepted):
            with pytest.raises(esdp.BadHandleError):
                pair.context.take_accepted(accepted)


def test_urgent_bytes_are_announced_and_end_a_receive(pair):
    target = bytearray(10)
    pair.right.await_urgent(pair.queue, "told")
    pair.right.recv(target, pair.queue, "recv", wait_all=True)
    pair.left.send(b"now!", pair.queue, urgent=True)
    events = {event.cookie: event.check() for event in pair.wait(3)}
    assert events["told"].urgent and events["recv"].urgent
    assert events["recv"].bytes == 4


def test_a_connection_moves_to_a_new_queue_pair(pair):
    target = bytearray(10)
    pair.right.recv(target, pair.queue, "recv")
    pair.left.suspend(pair.queue, "suspend")
    assert pair.wait()[0].check().type == "suspend"
    pair.left.send(b"after", pair.queue, "send")
    assert {event.cookie: event.check().bytes for event in pair.wait(2)} == {"recv": 5, "send": 5}
    assert pair.left.stats().resumptions == 1
    assert pair.left.stats().returns_rejected == 0


def test_nobody_is_moved_unless_it_is_asked_for():
    pair = Pair("sim:7")
    pair.left.suspend(pair.queue, "suspend")
    with pytest.raises(esdp.UnsupportedError, match="peer_moves"):
        pair.wait()[0].check()
    with pytest.raises(ValueError, match="'refused', 'guarded', 'unguarded'"):
        esdp.Context(fabric="sim:8", peer_moves="yes")
    pair.close()


def test_paths_and_completion_points_are_asked_for_by_word(pair):
    with pair.context.allocate(300_000) as source, pair.context.allocate(300_000) as target:
        assert not pair.move(source, target, path="copy").zero_copy
        assert pair.move(source[:4096], target[:4096], path="zero_copy").zero_copy
        assert pair.move(source, target, complete_at="delivered").bytes == 300_000
        with pytest.raises(ValueError, match="'copy'"):
            pair.left.send(source, pair.queue, path="teleport")


def test_options_are_read_back_as_they_are_in_force(context):
    with context.socket(linger=2.5, cancel_grace=0.5, zcopy_send_min=1000, send_mode="buffered") as socket:
        assert socket.get_option("linger") == 2.5
        assert socket.get_option("cancel_grace") == 0.5
        assert socket.get_option("zcopy_send_min") == 1000
        assert socket.get_option("send_mode") == "buffered"
        socket.set_option("zcopy_send_min", esdp.NEVER)
        assert socket.get_option("zcopy_send_min") == esdp.NEVER
        assert socket.get_option("peer_receive_buffer_bytes") == esdp.BY_FABRIC
        socket.set_option("peer_receive_buffer_bytes", 0)
        assert socket.get_option("peer_receive_buffer_bytes") == 0
        socket.set_option("peer_receive_buffer_bytes", esdp.BY_FABRIC)
        assert socket.get_option("deadline_policy") == "finish"
        assert socket.get_option("as_deployed") is False


def test_counters_tell_which_way_the_bytes_went(pair):
    with pair.context.allocate(300_000) as source, pair.context.allocate(300_000) as target:
        pair.move(source, target)
    stats = pair.left.stats()
    assert stats.bytes_sent_zero_copy > 200_000 and stats.asdict()["sends_zero_copy"] == 1
    assert pair.queue.stats().depth == 64 and pair.context.stats().sockets >= 2


def test_a_wait_ends_at_its_time_and_loses_nothing(pair):
    with pytest.raises(TimeoutError):
        pair.queue.get(timeout=0.01)
    pair.left.send(b"x", pair.queue)
    with pytest.raises(TimeoutError):
        pair.queue.get(min=2, timeout=0.01, max=2)
    assert pair.wait()[0].bytes == 1
    assert pair.queue.get_nowait() == []


def test_wake_ends_a_wait(pair):
    pair.queue.wake()
    with pytest.raises(esdp.CancelledError):
        pair.queue.get(timeout=LIMIT)


def test_other_threads_run_while_one_waits():
    pair = Pair("qpip")
    waiting = threading.Thread(target=lambda: pair.queue.get(timeout=LIMIT))
    waiting.start()
    begun = time.monotonic()
    counted = sum(1 for _ in range(100_000))
    pair.left.send(b"x", pair.queue)
    waiting.join(LIMIT)
    assert counted == 100_000 and not waiting.is_alive()
    assert time.monotonic() - begun < LIMIT
    pair.close()


def test_the_descriptor_is_readable_while_events_wait():
    import select

    pair = Pair("qpip")
    assert select.select([pair.queue], [], [], 0)[0] == []
    pair.left.send(b"x", pair.queue)
    assert select.select([pair.queue], [], [], LIMIT)[0] == [pair.queue]
    pair.wait()
    pair.close()
