"""What is left open is told; what is closed closes its children; a child of fork is told where it stands."""

import gc
import logging
import os
import subprocess
import sys
import threading
import traceback
import warnings
import weakref

import esdp
import pytest
from conftest import LIMIT, Pair


def run_python(text):
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "always", "-c", text],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


def in_child(body):
    """Runs body in a child of fork; gives what it says."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(body())
        except BaseException:
            text = traceback.format_exc()
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


def test_closing_a_context_closes_its_children():
    context = esdp.Context(fabric="qpip")
    queue, socket, region = context.queue(), context.socket(), context.register(bytearray(100))
    context.close()
    assert context.closed and queue.closed and region.closed
    context.close()
    for call in (queue.get, context.queue, context.socket, lambda: socket.listen(), lambda: context.allocate(1)):
        with pytest.raises(esdp.BadHandleError):
            call()
    with pytest.raises(ValueError):
        memoryview(region)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del queue, socket, region, context
        gc.collect()


def test_closing_a_context_gives_memory_back_in_the_middle_of_operations(pair):
    memory, source = bytearray(300_000), bytearray(300_000)
    cookie = type("Cookie", (), {})()
    gone = weakref.ref(cookie)
    pair.right.recv(memory, pair.queue, cookie)
    pair.left.send(pair.context.register(source), pair.queue, cookie)
    del cookie
    pair.left.close(mode="abort")
    pair.context.close()
    memory.clear()
    gc.collect()
    source.clear()
    assert gone() is None


@pytest.mark.parametrize("what, make", [
    ("Socket", lambda context: context.socket()),
    ("EventQueue", lambda context: context.queue()),
    ("Region", lambda context: context.allocate(10)),
])
def test_what_is_dropped_open_is_told(context, what, make):
    with pytest.warns(ResourceWarning, match=f"unclosed esdp.{what}"):
        make(context)
        gc.collect()


def test_a_context_that_is_dropped_open_is_told():
    with pytest.warns(ResourceWarning, match="unclosed esdp.Context"):
        esdp.Context(fabric="sim:5")
        gc.collect()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_queue_that_is_dropped_with_operations_ends_them(pair):
    memory = bytearray(100)
    queue = pair.context.queue()
    pair.right.recv(memory, queue)
    del queue
    gc.collect()
    memory.clear()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_socket_that_is_dropped_aborts_and_its_operations_end(pair):
    pair.right.recv(bytearray(10), pair.queue, "recv")
    pair.right = None
    gc.collect()
    event = pair.wait()[0]
    assert isinstance(event.error, ConnectionAbortedError) and event.socket is None
    pair.right = pair.context.socket()


def test_leaving_a_socket_sends_what_was_posted(pair):
    target = bytearray(5)
    with pair.left:
        pair.left.send(b"12345", pair.queue, "send")
    pair.right.recv(target, pair.queue, "recv", wait_all=True)
    assert {event.cookie: event.check().bytes for event in pair.wait(2)} == {"send": 5, "recv": 5}
    pair.right.recv(bytearray(1), pair.queue)
    assert pair.wait()[0].check().eof


def test_leaving_with_an_error_aborts(pair):
    pair.right.recv(bytearray(1), pair.queue)
    with pytest.raises(KeyError):
        with pair.left:
            raise KeyError
    assert isinstance(pair.wait()[0].error, ConnectionError)


def test_many_sockets_end_by_themselves(context):
    for _ in range(200):
        with context.socket() as socket:
            socket.bind("127.0.0.1:0")
            socket.listen()


def test_a_wait_in_another_thread_ends_with_the_context():
    pair = Pair("qpip")
    outcome = []

    def wait():
        try:
            while True:
                pair.queue.get(min=1)
        except esdp.BadHandleError as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    pair.close()
    thread.join(LIMIT)
    assert len(outcome) == 1


def test_every_call_after_fork_says_so():
    pair = Pair("qpip")
    region = pair.context.allocate(10)

    def child():
        said = []
        for call in (
            lambda: pair.left.send(region, pair.queue),
            lambda: pair.right.recv(region, pair.queue),
            lambda: pair.queue.get(timeout=1),
            lambda: pair.queue.get_nowait(),
            lambda: pair.context.socket(),
            lambda: pair.context.allocate(10),
            lambda: pair.context.close(),
        ):
            try:
                call()
                said.append("nothing")
            except esdp.AfterForkError as error:
                said.append("told" if "fork" in str(error) else str(error))
        return set(said)

    assert in_child(child) == "{'told'}"
    with pair.context.allocate(10) as target:
        assert pair.move(region, target).bytes == 10  # the parent's goes on
    region.close()
    pair.close()


def test_a_child_of_fork_may_open_its_own():
    pair = Pair("qpip")

    def child():
        own = Pair("qpip")
        got = own.move(b"12345", bytearray(5)).bytes
        own.close()
        return got

    assert in_child(child) == "5"
    pair.close()


@pytest.mark.parametrize("end", ["", "import sys; sys.exit(3)", "raise KeyError", "import os; os._exit(0)"])
def test_an_interpreter_ends_with_everything_open(end):
    code, output = run_python(f"""
import esdp, threading
context = esdp.Context(fabric="qpip")
queue = context.queue()
listener = context.socket()
listener.bind("127.0.0.1:0"); listener.listen()
listener.accept(queue, 0)
client = context.socket()
client.connect(listener.local, queue)
accepted = [event for event in queue.get(min=2) if event.has_connection][0]
server = context.take_accepted(accepted)
region = context.allocate(1 << 20)
server.recv(region, queue); client.send(region, queue)
def wait():
    try:
        while True: queue.get()
    except OSError: pass
threading.Thread(target=wait, daemon=True).start()
{end}
""")
    assert code == {"": 0, "import sys; sys.exit(3)": 3, "raise KeyError": 1}.get(end, 0), output
    assert "Fatal" not in output and "terminate" not in output


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_lines_of_the_log_reach_logging(pair, caplog):
    with caplog.at_level(logging.INFO, logger="esdp"):
        queue = pair.context.queue()
        pair.right.recv(bytearray(1), queue)
        del queue
        gc.collect()
        pair.context.close()
    assert [record.name for record in caplog.records] == ["esdp"]
    assert "queue was destroyed" in caplog.text


@pytest.mark.parametrize("dropped", [True, False])
def test_an_accepted_connection_whose_event_is_dropped_is_aborted(context, dropped):
    queue = context.queue()
    with context.socket() as listener, context.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.accept(queue)
        client.connect(listener.local, queue)
        accepted = [event for event in queue.get(min=2, timeout=LIMIT, max=2) if event.has_connection]
        client.recv(bytearray(1), queue)
        if dropped:
            del accepted[:]
            gc.collect()
            (ended,) = queue.get(timeout=LIMIT)
            assert isinstance(ended.error, esdp.PeerResetError)
        else:
            with context.take_accepted(accepted[0]) as server:
                del accepted[:]
                server.send(b"x", queue)
                assert all(event.ok for event in queue.get(min=2, timeout=LIMIT, max=2))
