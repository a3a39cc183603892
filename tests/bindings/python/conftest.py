"""Two connected sockets on each fabric, in one Context."""

import contextlib
import faulthandler
import os
import socket
import sys

import esdp
import hypothesis
import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# Examples are drawn anew from the same seed in each run; a failing one is printed.
hypothesis.settings.register_profile("ci", max_examples=25, deadline=None, database=None, derandomize=True)
hypothesis.settings.load_profile("ci")
faulthandler.dump_traceback_later(240, exit=True)  # a test that hangs tells where

FABRICS = ("qpip", "sim:7")
LIMIT = 20.0  # seconds for any wait, on a slow machine


@contextlib.contextmanager
def nobody_listens():
    """An address that refuses: bound, so that no other process listens there meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()


class Pair:
    """`left` connected to `right`; events of both come to `queue`."""

    def __init__(self, fabric, **options):
        self.context = esdp.Context(fabric=fabric, **options)
        self.queue = self.context.queue(depth=64)
        with self.context.socket() as listener:
            listener.bind("127.0.0.1:0")
            listener.listen(1)
            listener.accept(self.queue)
            self.left = self.context.socket()
            self.left.connect(listener.local, self.queue)
            events = self.queue.get(min=2, timeout=LIMIT)
            accepted = [event.check() for event in events if event.has_connection]
            self.right = self.context.take_accepted(accepted[0])

    def wait(self, count=1):
        return self.queue.get(min=count, timeout=LIMIT, max=count)

    def move(self, data, target, **options):
        """Sends data from left, receives all of it at right; gives the receive's event."""
        self.right.recv(target, self.queue, "recv", wait_all=True)
        self.left.send(data, self.queue, "send", **options)
        events = {event.cookie: event.check() for event in self.wait(2)}
        return events["recv"]

    def close(self):
        self.left.close(mode="abort")
        self.right.close(mode="abort")
        self.context.close()


@pytest.fixture(params=FABRICS)
def pair(request):
    pair = Pair(request.param, peer_moves="guarded")
    yield pair
    pair.close()


@pytest.fixture(params=FABRICS)
def context(request):
    with esdp.Context(fabric=request.param) as context:
        yield context
