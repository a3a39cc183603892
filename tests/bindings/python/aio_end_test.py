"""Whatever is awaited ends when it is told to, whatever the peer does, and no byte is lost by that."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import esdp
import esdp.aio
import pytest
from aio_test import connected, on_a_pair, run
from conftest import FABRICS, LIMIT

SOON = 10.0  # seconds: far more than what ends by itself takes, far less than a wait for the peer
GRACE = 0.2

PEER = """
import asyncio, esdp.aio
async def main():
    async with esdp.aio.Context(fabric="qpip") as context, context.listen("127.0.0.1:0") as listener:
        print(listener.address[1], flush=True)
        socket = await listener.accept()
        print("accepted", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def with_a_stopped_peer():
    """A Context and a socket of it; the process at the other end stands still."""
    with subprocess.Popen([sys.executable, "-c", PEER], stdout=subprocess.PIPE, text=True) as peer:
        try:
            port = int(peer.stdout.readline())
            async with esdp.aio.Context(fabric="qpip", abort_after=GRACE) as context:
                socket = await context.connect(("127.0.0.1", port))
                assert peer.stdout.readline() == "accepted\n"
                os.kill(peer.pid, signal.SIGSTOP)
                os.waitpid(peer.pid, os.WUNTRACED)  # all its threads stand still
                yield context, socket
        finally:
            peer.kill()


def ends_soon(body):
    """Runs body(context, socket) towards a process that stands still; leaving the Context counts too."""

    def test():
        async def main():
            async with with_a_stopped_peer() as (context, socket):
                begun.append(time.monotonic())
                await body(context, socket)

        begun = []
        run(main())
        assert time.monotonic() - begun[0] < SOON

    return test


@ends_soon
async def test_a_wait_for_a_send_that_has_begun_ends(context, socket):
    with context.allocate(1 << 20) as memory:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(socket.send(memory), 0.1)


@ends_soon
async def test_a_timeout_of_a_send_that_has_begun_is_a_timeout(context, socket):
    with context.allocate(1 << 20) as memory:
        with pytest.raises(TimeoutError):
            await socket.send(memory, timeout=0.1)


@ends_soon
async def test_a_cancelled_sendall_ends(context, socket):
    sending = asyncio.ensure_future(socket.sendall(bytes(8 << 20)))
    await asyncio.wait([sending], timeout=0.2)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


@ends_soon
async def test_a_cancelled_receive_of_registered_memory_ends(context, socket):
    with context.allocate(1 << 20) as memory:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await socket.recv(memory, path="zero_copy")


@ends_soon
async def test_leaving_a_socket_with_an_error_waits_for_nobody(context, socket):
    memory = context.allocate(1 << 20)
    with pytest.raises(KeyError):
        async with socket:
            sending = socket.send(memory)
            raise KeyError
    with pytest.raises(ConnectionAbortedError):
        await sending
    memory.close()


@ends_soon
async def test_a_close_keeps_its_timeout(context, socket):
    sending = socket.send(context.allocate(1 << 20))
    await socket.close(timeout=0.2)
    with pytest.raises(esdp.Error):
        await sending


@ends_soon
async def test_a_cancelled_close_ends(context, socket):
    sending = socket.send(context.allocate(1 << 20))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(socket.close(), 0.2)
    with pytest.raises(esdp.Error):
        await sending


@ends_soon
async def test_a_cancelled_shutdown_ends(context, socket):
    sending = socket.send(context.allocate(1 << 20))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(socket.shutdown(), 0.2)
    with pytest.raises(esdp.Error):
        await sending


@ends_soon
async def test_a_connect_that_nobody_answers_is_cancelled(context, socket):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(context.connect(socket.peer), 0.2)


def test_an_interrupt_ends_a_program_that_sends():
    async def main():
        async with with_a_stopped_peer() as (context, socket):
            begun.append(time.monotonic())
            async with socket:
                asyncio.get_running_loop().call_later(0.2, os.kill, os.getpid(), signal.SIGINT)
                await socket.send(context.allocate(1 << 20))

    begun = []
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert time.monotonic() - begun[0] < SOON


@on_a_pair
async def test_a_send_that_is_told_to_wait_waits_for_the_peer(context, left, right):
    context._abort_after = 0.01
    source, target = context.allocate(1 << 20), context.allocate(1 << 20)
    first = left.send(source[:1000], path="zero_copy", on_cancel="wait")
    sending = left.send(source, on_cancel="wait")
    assert await right.recv(target[:10], path="zero_copy") > 0
    sending.cancel()
    first.cancel()
    await asyncio.wait([first, sending], timeout=0.1)
    while not (first.done() and sending.done()):
        await right.recv(target)
    await left.shutdown()
    while await right.recv(target) > 0:
        pass
    source.close()
    target.close()


@on_a_pair
async def test_a_word_that_on_cancel_does_not_know_is_refused(context, left, right):
    with pytest.raises(ValueError):
        left.send(b"x", on_cancel="perhaps")


@on_a_pair
async def test_a_receive_that_nothing_comes_for_leaves_the_connection_as_it_was(context, left, right):
    with context.allocate(1 << 20) as memory:
        for path in ("zero_copy", "copy"):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(right.recv(memory, path=path), 0.01)
        with pytest.raises(TimeoutError):
            await right.recv(memory, timeout=0.01)
        sending = left.send(b"all the same")
        assert await right.recv(memory) == 12 and bytes(memory[:12]) == b"all the same"
        await sending


# --- bytes that came all the same ---


async def over(context):
    """Every operation has ended in the library; the loop was not told yet."""
    while context.core.stats().operations > 0:
        if context.core.virtual_time:
            context.core.progress(0.01)


@on_a_pair
async def test_a_receive_that_had_succeeded_when_it_was_cancelled_gives_its_bytes(context, left, right):
    target = bytearray(10)
    receiving, sending = right.recv(target), left.send(b"12345")
    await over(context)
    receiving.cancel()
    assert await receiving == 5 and target[:5] == b"12345"
    await sending
    await left.send(b"6")
    assert await right.recv(target) == 1 and target[:1] == b"6"


async def receive_and_say(socket, target, heard):
    heard.append(await socket.recv(target))


@on_a_pair
async def test_a_task_that_is_cancelled_too_late_leaves_the_bytes_to_the_next_receive(context, left, right):
    """Cancelled before the loop heard of the success, and after."""
    for told in (False, True):
        target, heard = bytearray(10), []
        task = asyncio.ensure_future(receive_and_say(right, target, heard))
        await asyncio.sleep(0)
        sending = left.send(b"12345")
        await over(context)
        if told:
            context._queue._deliver()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert heard == []
        await sending
        target[:] = bytes(10)
        assert await right.recv(target, wait_all=False) == 5 and target[:5] == b"12345"


@on_a_pair
async def test_bytes_are_given_in_order_whoever_was_cancelled(context, left, right):
    target = bytearray(4)
    task = asyncio.ensure_future(asyncio.wait_for(right.recv(target), LIMIT))
    await asyncio.sleep(0)
    sending = left.send(b"1234")
    await over(context)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        assert await task == 4
        return
    await sending
    sending = left.send(b"567890")
    assert await right.recv(memoryview(target)[:3], wait_all=True) == 3 and target[:3] == b"123"
    with context.allocate(7) as region:
        assert await right.recvv([region[:2], region[2:]], wait_all=True) == 7
        assert bytes(region) == b"4567890"
    await sending


@on_a_pair
async def test_a_receive_that_failed_with_a_part_leaves_it_to_the_next_one(context, left, right):
    target = bytearray(100)
    for end in (lambda: asyncio.wait_for(right.recv(target, wait_all=True), 0.2),
                lambda: right.recv(target, wait_all=True, timeout=0.2),
                lambda: asyncio.wait_for(right.recv_exactly(100), 0.2),
                lambda: asyncio.wait_for(right.recv_exactly_into(target), 0.2)):
        context._abort_after = LIMIT
        receiving = asyncio.ensure_future(end())
        await asyncio.sleep(0)
        await left.send(b"0123456789")
        with pytest.raises(TimeoutError):
            await receiving
        assert await right.recv_exactly(10) == b"0123456789"


@pytest.mark.parametrize("how", ["wait_for", "timeout", "tasks"])
def test_a_storm_of_timeouts_loses_no_byte(how):
    seed = int(os.environ.get("ESDP_SEED", "1"))
    chance = random.Random(seed)
    print("seed", seed)

    async def receive(socket, target):
        after = chance.random() * 0.002
        if how == "wait_for":
            return await asyncio.wait_for(socket.recv(target), after)
        if how == "timeout":
            async with asyncio.timeout(after):
                return await socket.recv(target)
        task = asyncio.ensure_future(socket.recv_exactly(chance.randrange(1, 2000)))
        asyncio.get_running_loop().call_later(after, task.cancel)
        try:
            data = await task
        except asyncio.CancelledError:
            raise TimeoutError from None
        except asyncio.IncompleteReadError as error:
            data = error.partial
        target[: len(data)] = data
        return len(data)

    async def body(context, left, right):
        data = os.urandom(300_000)

        async def send():
            position = 0
            while position < len(data):
                piece = data[position : position + chance.randrange(1, 3000)]
                position += len(piece)
                await left.sendall(piece)
                if chance.random() < 0.3:
                    await asyncio.sleep(chance.random() * 0.003)
            await left.shutdown()

        received, sending, target = bytearray(), asyncio.ensure_future(send()), bytearray(2000)
        while True:
            try:
                count = await receive(right, target)
            except TimeoutError:
                continue
            if count == 0:
                break
            received += target[:count]
        await sending
        assert received == data

    on_a_pair(body)("qpip")


@on_a_pair
async def test_a_cancelled_sendall_leaves_no_hole(context, left, right):
    data = b"".join(number.to_bytes(4, "big") for number in range(1 << 19))
    sending = asyncio.ensure_future(left.sendall(data))
    target = context.allocate(len(data))
    received = await right.recv(target)
    for _ in range(3):
        received += await right.recv(target[received:])

    async def end():
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        await left.shutdown()

    ending = asyncio.ensure_future(end())
    while received < len(data) and (count := await right.recv(target[received:])) > 0:
        received += count
    assert bytes(target[:received]) == data[:received]
    await ending
    target.close()


# --- receive exactly, wait for room, abort ---


def test_a_sendall_goes_though_another_peer_takes_nothing():
    async def main():
        async with esdp.aio.Context(fabric="qpip") as context, context.listen("127.0.0.1:0") as listener:

            async def pair():
                accepting = asyncio.ensure_future(listener.accept())
                return await context.connect(listener.address), await accepting

            standing = [await pair() for _ in range(3)]
            stuck = [asyncio.ensure_future(left.sendall(bytes(4 << 20))) for left, _ in standing]
            await asyncio.wait(stuck, timeout=0.2)
            left, right = await pair()
            data = os.urandom(1 << 20)
            receiving = asyncio.ensure_future(right.recv_exactly(len(data)))
            await asyncio.wait_for(left.sendall(data), 20)
            assert await receiving == data
            assert not any(one.done() for one in stuck)
            for one in stuck:
                one.cancel()
            await asyncio.wait(stuck)

    asyncio.run(main())


@on_a_pair
async def test_so_many_bytes_are_received_exactly(context, left, right):
    data = os.urandom(300_000)
    sending = asyncio.ensure_future(left.sendall(data))
    assert await right.recv_exactly(0) == b""
    assert await right.recv_exactly(100_000) == data[:100_000]
    with context.allocate(199_990) as region:
        await right.recv_exactly_into(region)
        assert bytes(region) == data[100_000:299_990]
    await sending
    await left.shutdown()
    with pytest.raises(asyncio.IncompleteReadError) as raised:
        await right.recv_exactly(11)
    assert raised.value.partial == data[-10:] and raised.value.expected == 11
    with pytest.raises(ValueError):
        await right.recv_exactly(-1)


def test_a_receive_of_any_memory_waits_for_room():
    async def main():
        async with esdp.aio.Context(fabric="qpip", bounce_pool_bytes=1 << 17) as context:
            left, right = await connected(context)
            async with left, right:
                targets = [bytearray(65536) for _ in range(8)]
                receives = [right.recv(target, wait_all=True) for target in targets]
                data = os.urandom(8 * 65536)
                source = context.register(data)
                sending = left.send(source)
                assert await asyncio.gather(*receives) == [65536] * 8
                assert b"".join(targets) == data
                await sending
                source.close()
                waiting = [right.recv(target) for target in targets]
                with pytest.raises(TimeoutError):
                    await right.recv(bytearray(65536), timeout=0.05)
                for receive in waiting:
                    receive.cancel()
                await asyncio.wait(waiting)
                await left.send(b"x")
                assert await right.recv(bytearray(1)) == 1

    run(main())


@on_a_pair
async def test_abort_ends_everything_at_once(context, left, right):
    receiving = left.recv(bytearray(1))
    left.abort()
    with pytest.raises(ConnectionAbortedError):
        await receiving
    with pytest.raises(ConnectionResetError):
        await right.recv(bytearray(1))


@pytest.mark.parametrize("fabric", FABRICS)
def test_leaving_a_context_does_not_wait_for_what_nobody_closed(fabric):
    async def main():
        async with esdp.aio.Context(fabric=fabric) as context:
            listener = context.listen("127.0.0.1:0")
            accepting = asyncio.ensure_future(listener.accept())
            left = await context.connect(listener.address)
            opened.extend([listener, left, await accepting])
            begun.append(time.monotonic())
            left.send(b"x")

    opened, begun = [], []
    run(main())
    assert time.monotonic() - begun[0] < esdp.aio._GRACE / 2


def test_a_host_may_be_a_name():
    async def main():
        async with esdp.aio.Context(fabric="qpip") as context, context.listen("127.0.0.1:0") as listener:
            port = listener.address[1]
            for address in (("localhost", port), f"localhost:{port}"):
                accepting = asyncio.ensure_future(listener.accept())
                async with await context.connect(address), await accepting:
                    pass
            with pytest.raises(OSError):
                await context.connect(("no-such-host.invalid", port))

    run(main())


def test_a_connection_that_comes_as_accept_is_cancelled_is_the_next_ones():
    async def main():
        async with esdp.aio.Context(fabric="qpip") as context, context.listen("127.0.0.1:0") as listener:
            for told in (False, True):
                accepting = asyncio.ensure_future(listener.accept())
                await asyncio.sleep(0)
                socket = context.core.socket()
                queue = context.core.queue()
                socket.connect(listener.address, queue)
                queue.get(timeout=LIMIT)[0].check()
                while context.core.stats().operations > 0:
                    pass
                if told:
                    context._queue._deliver()
                accepting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await accepting
                async with await listener.accept() as accepted:
                    socket.send(b"hello", queue)
                    assert await accepted.recv_exactly(5) == b"hello"
                socket.close(mode="abort")
                queue.get(timeout=LIMIT)
                queue.close()

    run(main())
