"""Close in one thread and use in others at the same time: nothing does more than raise."""

import contextlib
import faulthandler
import os
import threading

import esdp
import pytest

# The long form, by hand: ESDP_CLOSES=100000.
CLOSES = int(os.environ.get("ESDP_CLOSES", "500"))
CONTEXT_CLOSES = CLOSES // 20  # each opens a fabric and ends its threads
faulthandler.dump_traceback_later(240 + CLOSES // 10, exit=True)


class Users:
    """Threads that go on using what is replaced and closed beside them, until they are told to end."""

    def __init__(self, uses):
        self.target = None
        self.faults = []
        self.rounds = [0] * len(uses)
        self.ending = False
        self.threads = [threading.Thread(target=self.run, args=item) for item in enumerate(uses)]
        for thread in self.threads:
            thread.start()

    def run(self, number, use):
        while not self.ending:
            target = self.target
            try:
                if target is not None:
                    use(*target)
            except esdp.Error:
                pass
            except BaseException as fault:
                self.faults.append(fault)
                return
            self.rounds[number] += 1

    def each_has_used(self, more):
        """Waits until every thread has come round `more` times."""
        goals = [rounds + more for rounds in self.rounds]
        pause = threading.Event()
        while not self.faults and any(now < goal for now, goal in zip(self.rounds, goals)):
            pause.wait(0.00001)

    def end(self):
        self.ending = True
        for thread in self.threads:
            thread.join()
        assert not self.faults, self.faults


def get(queue, _socket):
    queue.get(timeout=0.001)


def get_now(queue, _socket):
    queue.get_nowait()


def post(queue, socket):
    socket.accept(queue, cookie=object(), timeout=0).cancel()


def look(queue, _socket):
    queue.wake()
    queue.stats()
    queue.fileno()
    queue.resize(64)
    repr(queue)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("progress", ["thread", "manual"])
def test_a_queue_closes_under_threads_that_wait_and_look(progress):
    with esdp.Context(fabric="qpip", progress=progress) as context:
        users = Users([get, get, get_now, look])
        try:
            for number in range(CLOSES):
                queue = context.queue(depth=64)
                users.target = (queue, None)
                if number % 4 == 0:
                    users.each_has_used(1)
                queue.close()
                with pytest.raises(esdp.BadHandleError):
                    queue.get()
        finally:
            users.end()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_queue_closes_under_threads_that_post():
    with esdp.Context(fabric="qpip") as context, context.socket() as listener:
        listener.bind("127.0.0.1:0")
        listener.listen(8)
        users = Users([get, get_now, post, post])
        try:
            for _ in range(CLOSES // 10):
                queue = context.queue(depth=64)
                users.target = (queue, listener)
                users.each_has_used(1)
                users.target = None
                while not queue.closed:
                    try:
                        queue.close()
                    except esdp.BusyError:
                        queue.get_nowait()
        finally:
            users.end()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("fabric", ["qpip", "sim:3"])
def test_a_context_closes_under_threads_that_wait_post_and_look(fabric):
    users = Users([get, get_now, post, look])
    try:
        for _ in range(CONTEXT_CLOSES):
            context = esdp.Context(fabric=fabric)
            listener, queue = context.socket(), context.queue(depth=64)
            listener.bind("127.0.0.1:0")
            listener.listen(8)
            users.target = (queue, listener)
            users.each_has_used(2)
            with contextlib.suppress(esdp.DeadlineError):
                context.close(timeout=0)
    finally:
        users.end()


def read(stream, _other):
    stream.read(100_000, timeout=0.001)


def write(stream, _other):
    stream.write(bytes(100_000), timeout=0.001)


def move_back(_stream, other):
    other.write(other.read(1000, timeout=0.001))


def look_at_it(stream, _other):
    stream.stats()
    stream.set_options(chunks_max=2)
    assert stream.readiness is not None and stream.local and repr(stream)


ENDS = [
    lambda stream: stream.abort(),
    lambda stream: stream.close(wait=False),
    lambda stream: stream.close(timeout=0.001),
    lambda stream: stream.shutdown_write(),
]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_stream_closes_under_threads_that_read_write_and_look():
    users = Users([read, write, write, move_back, look_at_it])
    try:
        with esdp.Context(fabric="qpip") as context, esdp.StreamListener.listen(context, "127.0.0.1:0") as listener:
            for number in range(CLOSES // 10):
                stream = esdp.Stream.connect(context, listener.local)
                users.target = (stream, listener.accept())
                users.each_has_used(1)
                with contextlib.suppress(esdp.Error):
                    ENDS[number % len(ENDS)](stream)
                users.each_has_used(1)
            users.target[0].abort()
            users.target[1].abort()
    finally:
        users.end()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_context_closes_under_threads_that_use_a_stream():
    users = Users([read, write, move_back, look_at_it])
    try:
        for _ in range(CONTEXT_CLOSES):
            context = esdp.Context(fabric="qpip")
            listener = esdp.StreamListener.listen(context, "127.0.0.1:0")
            stream = esdp.Stream.connect(context, listener.local)
            users.target = (stream, listener.accept())
            users.each_has_used(2)
            with contextlib.suppress(esdp.DeadlineError):
                context.close(timeout=0)
    finally:
        users.end()
