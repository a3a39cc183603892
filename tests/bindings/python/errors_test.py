"""Every error is an OSError with its errno, and one of Python's own where Python has one."""

import errno
import os
import re
import signal
import threading
import time

import esdp
import pytest
from conftest import LIMIT, Pair, nobody_listens


def test_a_refused_connection_is_a_connection_refused_error():
    with esdp.Context(fabric="qpip") as context, context.queue() as queue, context.socket() as client:
        with nobody_listens() as address:
            client.connect(address, queue)
            event = queue.get(timeout=LIMIT)[0]
        assert not event.ok and isinstance(event.error, ConnectionRefusedError)
        with pytest.raises(ConnectionRefusedError) as raised:
            event.check()
        assert raised.value.errno == event.errno == errno.ECONNREFUSED
        assert raised.value.kind == esdp.ErrorKind.REFUSED


def test_a_deadline_is_a_timeout_error(pair):
    pair.right.recv(bytearray(1), pair.queue, timeout=0.01)
    event = pair.wait()[0]
    assert isinstance(event.error, TimeoutError) and event.cancelled
    assert event.errno == errno.ETIMEDOUT


def test_a_peer_that_goes_away_is_a_connection_reset_error(pair):
    pair.right.recv(bytearray(1), pair.queue, "recv")
    pair.left.close(pair.queue, "abort", "close")
    events = {event.cookie: event for event in pair.wait(2)}
    assert isinstance(events["recv"].error, ConnectionResetError) and events["recv"].peer_reset


def test_a_send_after_shutdown_is_a_broken_pipe_error(pair):
    pair.left.shutdown(pair.queue)
    with pytest.raises(BrokenPipeError) as raised:
        pair.left.send(b"x", pair.queue)
    assert raised.value.errno == errno.EPIPE


def test_a_full_queue_is_a_blocking_io_error_and_keeps_nothing(pair):
    with pair.context.queue(depth=2) as small:
        memory = bytearray(10)
        pair.right.recv(memory, small)
        pair.right.recv(bytearray(10), small)
        late = bytearray(10)
        with pytest.raises(BlockingIOError):
            pair.right.recv(late, small)
        late.clear()
        assert small.outstanding == 2
        pair.right.cancel("receive")
        small.get(min=2, timeout=LIMIT)


def test_a_full_pool_is_a_blocking_io_error():
    pair = Pair("sim:1", bounce_pool_bytes=1 << 16)
    with pytest.raises(ValueError):
        pair.left.send(bytes(100_000), pair.queue)
    pair.right.recv(bytearray(200_000), pair.queue)  # takes no room
    pair.left.send(bytes(50_000), pair.queue)
    with pytest.raises(esdp.WindowFullError):
        pair.left.send(bytes(50_000), pair.queue)
    pair.close()


def test_a_port_that_is_taken_says_so(context):
    with context.socket() as first, context.socket() as second:
        first.bind("127.0.0.1:0")
        first.listen()
        second.bind(first.local)
        with pytest.raises(esdp.AddressInUseError) as raised:
            second.listen()
        assert raised.value.errno == errno.EADDRINUSE


def test_a_queue_that_operations_name_does_not_close(pair):
    queue = pair.context.queue()
    operation = pair.right.recv(bytearray(1), queue)
    with pytest.raises(esdp.BusyError):
        queue.close()
    operation.cancel()
    queue.get(timeout=LIMIT)
    queue.close()


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1", "host.example:80", ("name", 1), ("127.0.0.1", 70000), 5])
def test_only_numeric_addresses_are_taken(context, address):
    with context.socket() as client:
        with pytest.raises((ValueError, TypeError)):
            client.bind(address)


def test_addresses_of_both_families_are_read_and_given(context):
    with context.socket("ipv6") as listener:
        listener.bind(("::1", 0))
        listener.listen()
        host, port = listener.local
        assert host == "::1" and port > 0


@pytest.mark.parametrize("call", [
    lambda context: context.queue(dept=5),
    lambda context: context.socket(lingr=5),
    lambda context: context.queue(depth="many"),
    lambda context: esdp.Context(fabrc="qpip"),
])
def test_unknown_options_and_wrong_types_are_refused(context, call):
    with pytest.raises((TypeError, RuntimeError)):
        call(context)


@pytest.mark.parametrize("call", [
    lambda context: context.queue(depth=0),
    lambda context: context.queue(wait="never"),
    lambda context: context.queue(spin=-1.0),
    lambda context: context.socket("ipv5"),
    lambda context: context.socket(receive_buffers=1),
    lambda context: esdp.Context(fabric="warp"),
    lambda context: context.socket().set_option("lingr", 1),
])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_wrong_values_are_value_errors(context, call):
    with pytest.raises(ValueError):
        call(context)


def test_a_fabric_that_is_not_here_is_told_with_its_reason():
    with pytest.raises(OSError):
        esdp.Context(fabric="verbs:none0")
    report = esdp.Context.diagnose()
    assert report.chosen and "qpip" in {fabric.name for fabric in report.fabrics}
    assert "qpip" in str(report)


def test_a_context_tells_which_fabrics_it_has_opened():
    with esdp.Context(fabric="qpip") as context:
        assert context.transports == ["qpip"]
    with esdp.Context(fabric="auto") as context:
        found = {fabric.name.split(":")[0] for fabric in esdp.Context.diagnose().fabrics if fabric.available}
        assert set(context.transports) == found - {"sim"} and context.transports[-1] == "qpip"


def test_every_kind_of_error_has_its_number():
    """The numbers are those of api/esdp/status.h."""
    with open("api/esdp/status.h", encoding="utf-8") as file:
        text = re.sub(r"//.*", "", file.read())
    names = re.search(r"enum class ErrorKind[^{]*\{(.*?)\}", text, re.S).group(1)
    names = [name.split("=")[0].strip() for name in names.split(",") if name.strip()]
    wanted = [re.sub(r"(?<!^)(?=[A-Z])", "_", name[1:]).upper() for name in names]
    assert [kind.name for kind in esdp.ErrorKind] == wanted


def test_every_counter_of_the_headers_is_there():
    with open("api/esdp/stats.h", encoding="utf-8") as file:
        text = re.sub(r"//.*", "", file.read())
    for name, body in re.findall(r"struct (\w+) \{(.*?)\n\};", text, re.S):
        assert getattr(esdp, name)._fields == re.findall(r"uint\d+_t\s+(\w+)\s*=", body)


def test_a_signal_handler_runs_while_a_wait_goes_on():
    pair = Pair("qpip")
    seen = []

    def handler(*_):
        seen.append("alarm")
        pair.left.send(b"x", pair.queue)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert pair.wait()[0].bytes == 1 and seen == ["alarm"]
    finally:
        signal.signal(signal.SIGALRM, before)
    pair.close()


def test_an_exception_of_a_signal_handler_ends_a_wait():
    pair = Pair("qpip")
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        pair.wait()
    assert time.monotonic() - begun < LIMIT
    pair.close()
