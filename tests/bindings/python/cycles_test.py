"""What refers to itself through esdp, and nobody reaches, is collected; what somebody reaches stays as it is."""

import asyncio
import functools
import gc
import threading
import weakref

import esdp
import esdp.aio
import numpy
import pytest
from conftest import Pair

SIZE = 200_000  # above the threshold: the peer reads the memory itself


class Node:
    """A cookie that refers to whatever it is given."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


class Memory(bytearray):
    """Memory that refers to whatever it is given."""


class Array(numpy.ndarray):
    """The same."""


def memories():
    return Memory(SIZE), numpy.zeros(SIZE, dtype=numpy.uint8).view(Array)


@pytest.fixture(autouse=True)
def nothing_else_is_garbage():
    gc.collect()
    gc.disable()  # so that each test sees what its own call of gc.collect does
    yield
    gc.enable()
    gc.collect()


def watch(*objects):
    return [weakref.ref(one) for one in objects]


def all_gone(watched):
    gc.collect()
    return [one() for one in watched] == [None] * len(watched)


# --- what an operation keeps ---


@pytest.mark.parametrize("fabric", ["qpip", "sim:7"])
def test_a_cookie_that_refers_to_all_that_keeps_it_goes_with_it_and_each_is_told(fabric):
    pair = Pair(fabric)
    cookie = Node(pair=pair)
    pair.right.recv(bytearray(10), pair.queue, cookie)
    watched = watch(cookie, pair, pair.context, pair.queue, pair.left, pair.right)
    with pytest.warns(ResourceWarning) as told:
        del pair, cookie
        assert all_gone(watched)
    words = sorted({str(one.message).split()[1] for one in told})
    assert words == ["esdp.Context", "esdp.EventQueue", "esdp.Socket"]
    assert any("EventQueue with 1 operations outstanding" in str(one.message) for one in told)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("post", [
    lambda pair, cookie: pair.right.recv(bytearray(10), pair.queue, cookie),
    lambda pair, cookie: pair.right.await_urgent(pair.queue, cookie),
    lambda pair, cookie: pair.left.send(pair.context.allocate(SIZE), pair.queue, cookie),
    lambda pair, cookie: pair.right.recv(pair.context.allocate(SIZE)[:10], pair.queue, cookie),
    lambda pair, cookie: pair.left.sendv([pair.context.allocate(SIZE)] * 2, pair.queue, cookie),
    lambda pair, cookie: pair.left.send(b"ends at once", pair.queue, cookie),
    lambda pair, cookie: pair.left.close(pair.queue, "graceful", cookie),
])
def test_a_queue_that_only_a_cookie_knows_ends_its_operations_and_goes(pair, post):
    post(pair, cookie := Node(queue=pair.queue))
    watched = watch(cookie, pair.queue)
    del cookie
    pair.queue = None
    assert all_gone(watched)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("register", [False, True])
@pytest.mark.parametrize("memory", memories(), ids=lambda memory: type(memory).__name__)
@pytest.mark.parametrize("wrap", [lambda target: target, lambda target: target.view()], ids=["itself", "a view"])
def test_memory_that_refers_to_the_queue_of_its_operation_goes(pair, memory, register, wrap):
    memory = memory[:] if isinstance(memory, Array) else Memory(memory)
    memory.queue = pair.queue
    target = memory
    if register:
        memory.region = target = pair.context.register(memory)
    pair.right.recv(wrap(target) if register else target, pair.queue, Node(queue=pair.queue))
    watched = watch(memory, pair.queue)
    pair.queue = target = memory = None
    assert all_gone(watched)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_memory_in_a_list_that_refers_to_the_queue_of_its_operation_goes(pair):
    memory = Memory(SIZE)
    memory.queue, region = pair.queue, pair.context.register(memory)
    pair.right.recvv([region[:10], region[20:30]], pair.queue)
    watched = watch(memory, pair.queue, region)
    pair.queue = region = memory = None
    # The region may come first, and waits for its operation: then the next collection takes it.
    assert all_gone(watched[1:2]) and all_gone(watched)


# --- what the types keep themselves ---


def test_an_event_that_its_cookie_keeps_goes(pair):
    cookie = Node()
    pair.left.send(b"text", pair.queue, cookie)
    cookie.event = pair.wait()[0]
    assert gc.is_tracked(cookie.event) and cookie.event.cookie is cookie
    watched = watch(cookie, cookie.event)
    del cookie
    assert all_gone(watched)


@pytest.mark.parametrize("memory", memories(), ids=lambda memory: type(memory).__name__)
@pytest.mark.parametrize("keep", [
    lambda region: region,
    lambda region: region[2:5],
    lambda region: region.view(),
    lambda region: region[2:5].view(),
    lambda region: [region, region[:5], region[5:].view()],
], ids=["region", "slice", "view", "view of a slice", "all"])
def test_a_region_that_its_memory_keeps_goes_and_is_told(context, memory, keep):
    memory = memory[:] if isinstance(memory, Array) else Memory(memory)
    region = context.register(memory)
    memory.kept = keep(region)
    watched = watch(memory, region)
    with pytest.warns(ResourceWarning, match="unclosed esdp.Region"):
        del memory, region
        assert all_gone(watched)
    assert context.stats().regions == 0


def test_a_region_that_was_closed_goes_without_words(context, recwarn):
    memory = Memory(100)
    memory.region = context.register(memory)
    memory.view = memory.region.view()
    memory.region.close()
    watched = watch(memory, memory.region)
    del memory
    assert all_gone(watched) and not recwarn.list


def test_a_queue_that_was_closed_goes_without_words(context, recwarn):
    class Named(esdp.Context):
        pass

    with Named(fabric="sim:3") as named:
        named.queue_of_mine = named.queue()
        named.queue_of_mine._bind_to_loop(Node(context=named), functools.partial(Node, queue=named.queue_of_mine))
    watched = watch(named, named.queue_of_mine)
    del named
    assert all_gone(watched) and not recwarn.list


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_that_was_forgotten_with_awaits_goes_and_so_does_all_of_it():
    async def begin(kept):
        kept.context = esdp.aio.Context(fabric="qpip")
        kept.listener = kept.context.listen("127.0.0.1:0")
        kept.socket = await kept.context.connect(kept.listener.address)
        kept.receive = kept.socket.recv(bytearray(10))
        kept.accepting = asyncio.ensure_future(kept.listener.accept())

    kept = Node(loop=asyncio.new_event_loop())
    kept.loop.run_until_complete(begin(kept))
    kept.accepting.add_done_callback(lambda _, kept=kept: None)
    kept.accepting._log_destroy_pending = False
    watched = watch(kept, kept.loop, kept.context, kept.context._queue, kept.context.core, kept.receive)
    kept.loop.close()
    del kept
    assert all_gone(watched)


# --- what is reached stays ---


def test_a_cookie_whose_queue_is_reached_comes_back(pair):
    cookies = [Node(number=number, queue=pair.queue, pair=pair) for number in range(20)]
    targets = [bytearray(1) for _ in cookies]
    for cookie, target in zip(cookies, targets):
        pair.right.recv(target, pair.queue, cookie)
    watched = watch(*cookies)
    del cookie, cookies
    gc.collect()
    assert all(one() is not None for one in watched)
    for _ in targets:
        pair.left.send(b"x", pair.queue)
    events = pair.wait(2 * len(targets))
    assert [event.check().cookie.number for event in events if event.type == "recv"] == list(range(20))
    gc.collect()
    assert sorted(one().number for one in watched) == list(range(20))
    del events
    assert all_gone(watched)


def test_a_queue_that_is_reached_through_a_cookie_alone_keeps_its_operations(pair):
    cookie = Node(queue=pair.queue)
    pair.right.recv(bytearray(4), pair.queue, cookie, wait_all=True)
    pair.queue = None
    gc.collect()
    assert cookie.queue.outstanding == 1
    pair.left.send(b"text", cookie.queue)
    assert {event.check().bytes for event in cookie.queue.get(min=2, timeout=20)} == {4}
    pair.queue = cookie.queue


def test_memory_is_lent_while_its_queue_is_reached_though_its_region_is_not(pair):
    memory = Memory(SIZE)
    memory.region = pair.context.register(memory)
    pair.right.recv(memory.region, pair.queue, wait_all=True)
    watched = watch(memory)
    del memory
    gc.collect()
    assert watched[0]() is not None
    pair.left.send(pair.context.register(b"a" * SIZE), pair.queue)
    with pytest.warns(ResourceWarning, match="Region"):
        assert [event.check().bytes for event in pair.wait(2)] == [SIZE] * 2
        assert all_gone(watched)


def test_an_end_that_a_cookie_has_of_its_own_finds_the_queue_as_it_was_or_closed(pair):
    found = []

    class Ended(Node):
        def __del__(self):
            found.append((self.queue, self.queue.closed))

    pair.right.recv(bytearray(4), pair.queue, Ended(queue=pair.queue))
    pair.queue = None
    with pytest.warns(ResourceWarning, match="EventQueue"):
        gc.collect()
    ((queue, _),) = found
    with pytest.raises(esdp.BadHandleError):  # it was forgotten, and found again
        queue.get()
    pair.queue = pair.context.queue()


# --- what is half made, and threads ---


@pytest.mark.parametrize("name", ["Context", "Event", "EventQueue", "OpId", "Region", "Slice", "Socket"])
def test_what_is_not_made_yet_is_looked_at_and_nothing_happens(name):
    half_made = getattr(esdp, name).__new__(getattr(esdp, name))
    half_made_too = [half_made]
    half_made_too.append(half_made_too)
    gc.collect()
    del half_made, half_made_too
    gc.collect()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_collections_at_any_moment_leave_everything_as_it_is(pair):
    """In each allocation that is tracked; and queues, regions and cycles end in several threads."""
    ending, faults = threading.Event(), []

    def make_garbage():
        try:
            while not ending.is_set():
                with pair.context.queue(depth=16) as queue:
                    memory = Memory(100)
                    memory.region = pair.context.register(memory)
                    memory.parts = [memory.region[:5], queue]
                    queue.get_nowait()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=make_garbage) for _ in range(2)]
    thresholds = gc.get_threshold()
    try:
        for thread in threads:
            thread.start()
        gc.enable()
        gc.set_threshold(1, 1, 1)
        for number in range(100):
            target = bytearray(4)
            pair.right.recv(target, pair.queue, Node(queue=pair.queue, number=number), wait_all=True)
            pair.left.send(b"text", pair.queue, Node(queue=pair.queue, number=number))
            events = pair.wait(2)
            assert [event.check().cookie.number for event in events] == [number] * 2 and target == b"text"
    finally:
        gc.set_threshold(*thresholds)
        ending.set()
        for thread in threads:
            thread.join()
    assert not faults
