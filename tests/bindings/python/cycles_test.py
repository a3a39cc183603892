"""A cycle through the cookie of an operation is collected, and what was not closed is still told."""

import gc
import warnings
import weakref

import pytest
from conftest import Pair


class Owner:
    """What a program gives as cookie: it knows the queue, the sockets and the last event."""

    def __init__(self, pair):
        self.pair = pair
        self.event = None


@pytest.fixture(autouse=True)
def no_collection_by_chance():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def collected(make):
    """What is told of unclosed things when what make() gives a weak reference to is collected."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reference = make()
        assert reference() is not None
        gc.collect()
        assert reference() is None
    return " ".join(str(warning.message) for warning in told if issubclass(warning.category, ResourceWarning))


@pytest.mark.parametrize("fabric", ["qpip", "sim:3"])
def test_a_cookie_of_a_pending_operation_that_knows_its_queue(fabric):
    def make():
        owner = Owner(Pair(fabric))
        owner.pair.right.recv(bytearray(10), owner.pair.queue, owner)
        return weakref.ref(owner)

    told = collected(make)
    assert "EventQueue with 1 operations outstanding" in told and "Context" in told and "Socket" in told


def test_an_event_that_its_own_cookie_keeps():
    def make():
        pair = Pair("qpip")
        owner = Owner(None)
        pair.right.recv(bytearray(1), pair.queue, owner)
        pair.left.send(b"x", pair.queue)
        (owner.event,) = [event for event in pair.wait(2) if event.cookie is owner]
        pair.close()
        return weakref.ref(owner)

    collected(make)


def test_a_cookie_in_a_cycle_of_its_own_comes_back_with_its_event():
    pair = Pair("qpip")
    cookie = []
    cookie.append(cookie)
    pair.right.recv(bytearray(1), pair.queue, cookie)
    name = id(cookie)
    del cookie
    gc.collect()
    pair.left.send(b"x", pair.queue)
    (back,) = [event.cookie for event in pair.wait(2) if event.type == "recv"]
    assert id(back) == name and back[0] is back
    pair.close()


def test_memory_of_a_pending_operation_is_there_until_the_queue_has_gone():
    pair = Pair("qpip")
    memory = bytearray(100)
    pair.right.recv(memory, pair.queue, "cookie", wait_all=True)
    gc.collect()
    with pytest.raises(BufferError):
        memory.extend(b"more")  # it is in use
    pair.left.send(bytes(100), pair.queue)
    pair.wait(2)
    pair.close()
