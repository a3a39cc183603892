"""Programs that know nothing of esdp run over it: a loop makes their connections and servers."""

import asyncio
import contextlib
import functools
import os
import subprocess
import tempfile

import aiohttp
import aiohttp.web
import esdp
import esdp.aio
import esdp.streams
import pytest
import redis.asyncio
import websockets
from conftest import LIMIT

BIG = os.urandom(1_000_000)


class Loop(asyncio.SelectorEventLoop):
    """Takes its streams from esdp.streams in place of TCP."""

    context = None
    made = 0

    async def create_connection(self, *arguments, **options):
        self.made += 1
        return await esdp.streams.create_connection(*arguments, context=self.context, **options)

    async def create_server(self, *arguments, **options):
        return await esdp.streams.create_server(*arguments, context=self.context, **options)


def run(body):
    async def main():
        loop = asyncio.get_running_loop()
        complaints = []
        loop.set_exception_handler(lambda loop, context: complaints.append(context))
        async with esdp.aio.Context(fabric="qpip") as loop.context:
            await asyncio.wait_for(body(), 3 * LIMIT)
        assert loop.made > 0 and complaints == []

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())


# --- Redis: the server speaks TCP and Unix sockets, so it stands behind a relay ---


async def copy(reader, writer):
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def redis_behind_a_relay():
    with tempfile.TemporaryDirectory(prefix="esdp-", dir="/tmp") as folder:  # names of Unix sockets are short
        path = os.path.join(folder, "redis")
        command = ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                await answers(path, server)
                async with await asyncio.start_server(functools.partial(relay, path), "127.0.0.1", 0) as served:
                    yield served.sockets[0].getsockname()
            finally:
                server.kill()


async def answers(path, server):
    while True:
        assert server.poll() is None
        try:
            (await asyncio.open_unix_connection(path))[1].close()
            return
        except OSError:
            await asyncio.sleep(0.01)


async def relay(path, reader, writer):
    there = await asyncio.open_unix_connection(path)
    await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))


def test_redis_client():
    async def body():
        async with redis_behind_a_relay() as (host, port):
            client = redis.asyncio.Redis(host=host, port=port)
            assert await client.ping()
            await client.set("big", BIG)
            assert await client.get("big") == BIG
            async with client.pipeline() as pipeline:
                for number in range(1000):
                    pipeline.incr("count", number)
                assert (await pipeline.execute())[-1] == 499500
            counts = await asyncio.gather(*(client.incr("together") for _ in range(50)))
            assert sorted(counts) == list(range(1, 51))
            subscribed = client.pubsub()
            await subscribed.subscribe("news")
            assert (await subscribed.get_message(timeout=LIMIT))["type"] == "subscribe"
            assert await client.publish("news", b"heard") == 1
            assert (await subscribed.get_message(timeout=LIMIT))["data"] == b"heard"
            await subscribed.close()
            await client.close()
            await client.connection_pool.disconnect()

    run(body)


# --- websockets ---


def test_websockets_client_and_server():
    async def body():
        async def echo(socket):
            async for message in socket:
                await socket.send(message)

        async with websockets.serve(echo, "localhost", 0, max_size=None) as server:
            port = server.sockets[0].getsockname()[1]
            async with websockets.connect(f"ws://localhost:{port}", max_size=None) as socket:
                for message in ("text", b"bytes", "", BIG, "x" * 300_000):
                    await socket.send(message)
                    assert await socket.recv() == message
                await (await socket.ping())
                await socket.close(1001, "enough")
                assert socket.close_code == 1001
            with pytest.raises(websockets.InvalidStatusCode):
                refused = websockets.connect(f"ws://localhost:{port}", extra_headers={"Sec-WebSocket-Version": "1"})
                async with refused:
                    pass

    run(body)


# --- aiohttp ---


async def answer(request):
    return aiohttp.web.Response(body=await request.read(), headers={"From": str(request.remote)})


async def stream(request):
    response = aiohttp.web.StreamResponse()
    await response.prepare(request)
    for number in range(100):
        await response.write(b"%d\n" % number)
    return response


async def converse(request):
    socket = aiohttp.web.WebSocketResponse(max_msg_size=0)
    await socket.prepare(request)
    async for message in socket:
        await socket.send_bytes(message.data)
    return socket


def test_aiohttp_client_and_server(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(BIG)

    async def send_file(request):
        return aiohttp.web.FileResponse(file)

    async def body():
        application = aiohttp.web.Application(client_max_size=0)
        application.add_routes([
            aiohttp.web.post("/echo", answer),
            aiohttp.web.get("/stream", stream),
            aiohttp.web.get("/file", send_file),
            aiohttp.web.get("/socket", converse),
        ])
        runner = aiohttp.web.AppRunner(application)
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = "http://127.0.0.1:%d" % runner.addresses[0][1]
        async with aiohttp.ClientSession() as session:
            for _ in range(3):
                async with session.post(url + "/echo", data=BIG) as response:
                    assert await response.read() == BIG and response.headers["From"] == "127.0.0.1"
            async with session.get(url + "/stream") as response:
                assert [int(line) async for line in response.content] == list(range(100))
            async with session.get(url + "/file") as response:
                assert await response.read() == BIG
            async with session.get(url + "/file", headers={"Range": "bytes=10-19"}) as response:
                assert response.status == 206 and await response.read() == BIG[10:20]
            async with session.get(url + "/none") as response:
                assert response.status == 404
            async with session.ws_connect(url + "/socket", max_msg_size=0) as socket:
                await socket.send_bytes(BIG)
                assert (await socket.receive()).data == BIG
            bodies = [os.urandom(1000) for _ in range(50)]

            async def post(data):
                async with session.post(url + "/echo", data=data) as response:
                    return await response.read()

            assert await asyncio.gather(*map(post, bodies)) == bodies
        await runner.cleanup()

    run(body)
