"""Operations are awaited: cancelled, timed out, dropped with their loop, and served in batches."""

import asyncio
import contextlib
import gc
import os
import random
import warnings

import esdp
import esdp.aio
import pytest
from conftest import FABRICS, LIMIT


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 3 * LIMIT))


async def connected(context):
    with_listener = context.listen("127.0.0.1:0")
    accepted = asyncio.ensure_future(with_listener.accept())
    left = await context.connect(with_listener.address)
    right = await accepted
    with_listener.close()
    return left, right


def on_a_pair(body):
    """Runs body(context, left, right) in a loop, on each fabric."""

    @pytest.mark.parametrize("fabric", FABRICS)
    def test(fabric):
        async def main():
            async with esdp.aio.Context(fabric=fabric) as context:
                left, right = await connected(context)
                async with left, right:
                    await body(context, left, right)

        run(main())

    return test


@on_a_pair
async def test_what_is_sent_is_received(context, left, right):
    source, target = context.register(bytearray(b"0123456789")), bytearray(10)
    receiving = right.recv(target)
    assert await left.send(source[2:7]) == 5
    assert await receiving == 5 and target[:5] == b"23456"
    await left.shutdown()
    assert await right.recv(target) == 0
    source.close()


@on_a_pair
async def test_many_are_outstanding_at_once(context, left, right):
    source = context.register(os.urandom(200_000))
    target = context.allocate(200_000)
    receives = [right.recv(target[i : i + 1000], wait_all=True) for i in range(0, 200_000, 1000)]
    sends = [left.send(source[i : i + 2000]) for i in range(0, 200_000, 2000)]
    assert await asyncio.gather(*receives) == [1000] * 200
    assert await asyncio.gather(*sends) == [2000] * 100
    assert bytes(target) == bytes(source)
    source.close()
    target.close()


@on_a_pair
async def test_a_queue_grows_with_what_is_outstanding(context, left, right):
    target = context.allocate(3000)
    receives = [right.recv(target[i : i + 1]) for i in range(3000)]
    await left.sendall(bytes(3000))
    assert await asyncio.gather(*receives) == [1] * 3000
    target.close()


@on_a_pair
async def test_sendall_waits_for_room(context, left, right):
    data = os.urandom(3_000_000)
    sending = asyncio.ensure_future(left.sendall(data))
    target = bytearray(len(data))
    view = context.register(target)
    assert await right.recv(view, wait_all=True) == len(data)
    await sending
    assert target == data
    view.close()


@on_a_pair
async def test_a_cancelled_await_ends_after_the_terminal_event(context, left, right):
    target = bytearray(10)

    async def receive():
        await right.recv(target)

    task = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    with pytest.raises(BufferError):
        target.clear()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    target.clear()
    await left.sendall(b"x")
    assert await right.recv(bytearray(5)) == 1


@on_a_pair
async def test_a_timeout_of_asyncio_leaves_nothing_behind(context, left, right):
    target = bytearray(10)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(right.recv(target), 0.01)
    target.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await right.recv(bytearray(1))


@on_a_pair
async def test_an_operation_has_a_timeout_of_its_own(context, left, right):
    with pytest.raises(TimeoutError) as raised:
        await right.recv(bytearray(1), timeout=0.01)
    assert isinstance(raised.value, esdp.DeadlineError)


@on_a_pair
async def test_an_error_reaches_who_awaits(context, left, right):
    receiving = right.recv(bytearray(1))
    await left.close("abort")
    with pytest.raises(ConnectionResetError):
        await receiving
    with pytest.raises(ConnectionResetError):
        await right.send(b"x")


@on_a_pair
async def test_a_storm_of_cancels_loses_no_byte(context, left, right):
    seed = int(os.environ.get("ESDP_SEED", "1"))
    chance = random.Random(seed)
    print("seed", seed)
    data = os.urandom(150_000)
    received = bytearray()

    async def receive():
        while True:
            target = bytearray(chance.randrange(1, 2000))
            future = right.recv(target)
            if chance.random() < 0.7:
                asyncio.get_running_loop().call_later(chance.random() * 0.002, future.cancel)
            try:
                count = await future
            except asyncio.CancelledError as error:
                count = error.args[0].bytes
                if not error.args[0].ok:
                    assert error.args[0].cancelled and count == 0
                elif count == 0:
                    return
            else:
                if count == 0:
                    return
            received.extend(target[:count])

    receiving = asyncio.ensure_future(receive())
    sent = bytearray()
    position = 0
    while position < len(data):
        piece = data[position : position + chance.randrange(1, 3000)]
        position += len(piece)
        future = left.send(piece)
        if chance.random() < 0.5:
            future.cancel()
        try:
            await future
            sent += piece
        except asyncio.CancelledError as error:
            sent += piece[: error.args[0].bytes]
    await left.shutdown()
    await receiving
    assert received == sent and len(sent) > 0


@on_a_pair
async def test_hundreds_of_tasks_are_cancelled_at_once(context, left, right):
    target = context.allocate(500)

    async def receive(i):
        await right.recv(target[i : i + 1])

    tasks = [asyncio.ensure_future(receive(i)) for i in range(500)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    target.close()  # nothing uses it any more


@pytest.mark.parametrize("fabric", FABRICS)
def test_connections_are_taken_by_async_for(fabric):
    async def main():
        async with esdp.aio.Context(fabric=fabric) as context, context.listen("127.0.0.1:0") as listener:

            async def serve():
                served = 0
                async for socket in listener:
                    async with socket:
                        target = bytearray(10)
                        await socket.sendall(target[: await socket.recv(target)])
                        served += 1
                return served

            serving = asyncio.ensure_future(serve())
            for number in range(5):
                async with await context.connect(listener.address) as client:
                    await client.sendall(b"%d" % number)
                    target = bytearray(10)
                    assert await client.recv(target) == 1 and target[:1] == b"%d" % number
                    assert await client.recv(target) == 0
            listener.close()
            assert await serving == 5

    run(main())


def test_a_refused_connection_is_told():
    async def main():
        async with esdp.aio.Context(fabric="qpip") as context:
            listener = context.listen("127.0.0.1:0")
            address = listener.address
            listener.close()
            with pytest.raises(ConnectionRefusedError):
                await context.connect(address)

    run(main())


def test_one_connection_has_a_context_of_its_own():
    async def main():
        async with esdp.aio.Context(fabric="qpip") as context, context.listen(("127.0.0.1", 0)) as listener:
            accepted = asyncio.ensure_future(listener.accept())
            async with esdp.aio.connect(listener.address, fabric="qpip") as client:
                async with await accepted as server:
                    await client.sendall(b"hello")
                    target = bytearray(5)
                    assert await server.recv(target, wait_all=True) == 5

    run(main())


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_loop_is_closed_in_flight(fabric, caplog):
    loop = asyncio.new_event_loop()
    target = bytearray(100)

    async def begin():
        context = esdp.aio.Context(fabric=fabric)
        left, right = await connected(context)
        return context, left, right, right.recv(target)

    context, left, right, future = loop.run_until_complete(begin())
    loop.close()
    with pytest.raises(BufferError):
        target.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        context.close()
    target.clear()
    assert not future.done()
    del context, left, right, future
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_a_run_that_is_interrupted_leaves_nothing_lent():
    target = bytearray(100)

    async def main():
        async with esdp.aio.Context(fabric="qpip") as context:
            left, right = await connected(context)
            async with left, right:
                task = asyncio.ensure_future(wait(right))
                await asyncio.sleep(0)
                assert not task.done()
                raise KeyError

    async def wait(socket):
        with contextlib.suppress(ConnectionError):
            await socket.recv(target)

    with pytest.raises(KeyError):
        asyncio.run(main())
    target.clear()


@on_a_pair
async def test_urgent_bytes_are_awaited(context, left, right):
    told = right.await_urgent()
    receiving = right.recv(bytearray(10), wait_all=True)
    await left.send(b"now!", urgent=True)
    assert (await told).urgent
    assert await receiving == 4
