"""A transport of esdp.streams keeps asyncio's contract. Each test runs over asyncio's own TCP too, which says what that is."""

import array
import asyncio
import gc
import tempfile
import time
import types
import weakref

import esdp
import esdp.aio
import esdp.streams
import pytest
from aio_test import run
from conftest import LIMIT

SIZE = 1_000_000


class Recorder(asyncio.Protocol):
    """Keeps what it is told."""

    def __init__(self):
        self.told, self.data = [], bytearray()
        self.lost = asyncio.get_running_loop().create_future()
        self.changed = asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport
        self._note("made")

    def data_received(self, data):
        self.data += data
        self._note("data")

    def eof_received(self):
        self._note("eof")
        return True

    def pause_writing(self):
        self._note("pause")

    def resume_writing(self):
        self._note("resume")

    def connection_lost(self, error):
        self._note("lost")
        self.lost.set_result(error)

    def _note(self, what):
        self.told.append(what)
        self.changed.set()

    async def until(self, condition):
        while not condition():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), LIMIT)


def on_each(body):
    """Runs body(client, server, complaints): protocols, connected by TCP and by esdp."""

    @pytest.mark.parametrize("kind", ["tcp", "esdp"])
    def test(kind):
        async def main():
            loop, complaints, made = asyncio.get_running_loop(), [], asyncio.Queue()
            loop.set_exception_handler(lambda loop, context: complaints.append(context))

            def serve():
                made.put_nowait(Recorder())
                return made._queue[-1]

            async with esdp.aio.Context(fabric="qpip") as context:
                over = types.SimpleNamespace(create_server=loop.create_server, create_connection=loop.create_connection)
                options = {}
                if kind == "esdp":
                    over, options = esdp.streams, {"context": context}
                server = await over.create_server(serve, "127.0.0.1", 0, **options)
                port = server.sockets[0].getsockname()[1]
                transport, client = await over.create_connection(Recorder, "127.0.0.1", port, **options)
                assert client.told[0] == "made" and client.transport is transport
                accepted = await made.get()
                await accepted.until(lambda: accepted.told)
                await body(client, accepted, complaints)
                for protocol in (client, accepted):
                    protocol.transport.abort()
                    await protocol.lost
                server.close()
                await server.wait_closed()

        run(main())

    return test


@on_each
async def test_nothing_is_told_of_data_while_reading_is_paused(client, server, complaints):
    for _ in range(20):
        server.transport.pause_reading()
        assert not server.transport.is_reading()
        before = len(server.data)
        client.transport.write(b"x" * 1000)
        await asyncio.sleep(0.01)  # long enough for what must not come
        assert len(server.data) == before
        server.transport.resume_reading()
        assert server.transport.is_reading() and len(server.data) == before, "not from inside of resume_reading"
        await server.until(lambda: len(server.data) == before + 1000)
    server.transport.pause_reading()
    client.transport.write_eof()
    await asyncio.sleep(0.01)
    assert "eof" not in server.told
    server.transport.resume_reading()
    await server.until(lambda: "eof" in server.told)
    assert complaints == []


@on_each
async def test_a_protocol_may_pause_from_inside_of_a_callback(client, server, complaints):
    def data_received(data):
        Recorder.data_received(server, data)
        server.transport.pause_reading()

    server.data_received = data_received
    client.transport.write(bytes(SIZE))
    while len(server.data) < SIZE:
        before = server.told.count("data")
        await server.until(lambda: server.told.count("data") > before - 1 and not server.transport.is_reading())
        assert server.told.count("data") <= before + 1
        server.transport.resume_reading()
        await asyncio.sleep(0)
    assert complaints == []


def breaks(name, arguments):
    def call(*given):
        raise ArithmeticError(name)

    async def body(client, server, complaints):
        setattr(server, name, call)
        arguments(client)
        error = await asyncio.wait_for(server.lost, LIMIT)
        assert isinstance(error, ArithmeticError)
        (complaint,) = complaints
        assert complaint["exception"] is error and complaint["transport"] is server.transport
        assert complaint["protocol"] is server and f"protocol.{name}() call failed" in complaint["message"]

    return on_each(body)


test_an_exception_of_data_received_ends_the_connection = breaks("data_received", lambda client: client.transport.write(b"x"))
test_an_exception_of_eof_received_ends_the_connection = breaks("eof_received", lambda client: client.transport.write_eof())


@on_each
async def test_an_exception_of_pause_writing_is_told_to_the_loop(client, server, complaints):
    def pause_writing():
        raise ArithmeticError

    client.pause_writing = pause_writing
    server.transport.pause_reading()
    client.transport.set_write_buffer_limits(high=0)
    for _ in range(20):
        client.transport.write(bytes(SIZE))
    assert isinstance(complaints[0]["exception"], ArithmeticError) and len(complaints) == 1
    assert not client.transport.is_closing()


class Filled(asyncio.BufferedProtocol):
    """Takes what comes into a buffer that is smaller than what comes at once."""

    def __init__(self, recorder, size):
        self.recorder, self.buffer = recorder, bytearray(size)

    def get_buffer(self, hint):
        return self.buffer

    def buffer_updated(self, count):
        self.recorder.data_received(bytes(self.buffer[:count]))

    def eof_received(self):
        return self.recorder.eof_received()

    def connection_lost(self, error):
        self.recorder.connection_lost(error)


@on_each
async def test_a_buffered_protocol_is_filled(client, server, complaints):
    server.transport.set_protocol(Filled(server, 777))
    assert isinstance(server.transport.get_protocol(), Filled)
    data = bytes(range(250)) * 400
    client.transport.write(data)
    await server.until(lambda: len(server.data) == len(data))
    assert server.data == data and complaints == []


@on_each
async def test_an_empty_buffer_of_a_protocol_ends_the_connection(client, server, complaints):
    server.transport.set_protocol(Filled(server, 0))
    client.transport.write(b"x")
    assert isinstance(await asyncio.wait_for(server.lost, LIMIT), RuntimeError)
    assert "get_buffer() call failed" in complaints[0]["message"]


@on_each
async def test_memory_of_any_format_is_written(client, server, complaints):
    numbers = array.array("i", range(1000))
    pieces = [memoryview(numbers), memoryview(numbers)[::2], memoryview(bytearray(b"changes")), bytearray(b"array"), b"b"]
    expected = b"".join(bytes(piece) for piece in pieces)
    for piece in pieces:
        if isinstance(piece, memoryview) and not piece.contiguous:
            piece = memoryview(piece.tobytes())
        client.transport.write(piece)
    numbers[0] = 7
    client.transport.writelines([b"the", b"end"])
    await server.until(lambda: len(server.data) == len(expected) + 6)
    assert server.data[4:] == (expected + b"theend")[4:]
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError):
            client.transport.write(wrong)


@on_each
async def test_the_limits_of_the_buffer_decide_when_to_pause(client, server, complaints):
    transport = client.transport
    assert transport.get_write_buffer_limits() == (16384, 65536)
    transport.set_write_buffer_limits(high=1000)
    assert transport.get_write_buffer_limits() == (250, 1000)
    transport.set_write_buffer_limits(low=1000)
    assert transport.get_write_buffer_limits() == (1000, 4000)
    with pytest.raises(ValueError):
        transport.set_write_buffer_limits(high=1, low=2)
    server.transport.pause_reading()
    for _ in range(20):
        transport.write(bytes(SIZE))
    assert client.told.count("pause") == 1 and transport.get_write_buffer_size() > 4000
    server.transport.resume_reading()
    await client.until(lambda: "resume" in client.told)
    assert transport.get_write_buffer_size() <= 1000
    await server.until(lambda: len(server.data) == 20 * SIZE)


@on_each
async def test_an_end_of_writing_comes_after_what_was_written(client, server, complaints):
    assert client.transport.can_write_eof()
    client.transport.write(bytes(SIZE))
    client.transport.write_eof()
    client.transport.write_eof()
    with pytest.raises(RuntimeError):
        client.transport.write(b"x")
    await server.until(lambda: "eof" in server.told)
    assert len(server.data) == SIZE
    server.transport.write(b"answer")
    await client.until(lambda: client.data == b"answer")


@on_each
async def test_a_close_drains_and_an_abort_does_not_wait(client, server, complaints):
    client.transport.write(bytes(SIZE))
    client.transport.close()
    assert client.transport.is_closing() and not client.transport.is_reading()
    await server.until(lambda: "eof" in server.told)
    assert len(server.data) == SIZE and await asyncio.wait_for(client.lost, LIMIT) is None
    client.transport.write(b"in vain")
    server.transport.abort()
    assert await asyncio.wait_for(server.lost, LIMIT) is None
    assert client.told.count("lost") == server.told.count("lost") == 1 and complaints == []


@on_each
async def test_an_abort_ends_a_close_that_does_not_end(client, server, complaints):
    server.transport.pause_reading()
    for _ in range(20):
        client.transport.write(bytes(SIZE))
    client.transport.close()
    await asyncio.sleep(0.01)
    assert not client.lost.done()
    client.transport.abort()
    await asyncio.wait_for(client.lost, LIMIT)


@on_each
async def test_a_file_is_sent(client, server, complaints):
    with tempfile.TemporaryFile() as file:
        file.write(bytes(range(250)) * 4000)
        file.flush()
        loop = asyncio.get_running_loop()
        assert await loop.sendfile(client.transport, file, offset=1) == SIZE - 1
        client.transport.write(b"the end")
        await server.until(lambda: len(server.data) == SIZE + 6)
        assert server.data[:249] == bytes(range(1, 250)) and server.data[-7:] == b"the end"
    assert client.transport.get_protocol() is client


def sends_a_file_behind(room):
    """Writes what the peer does not take, and a file behind it; `room`: how much more may wait until a writer is paused."""

    @on_each
    async def test(client, server, complaints):
        server.transport.pause_reading()
        client.transport.set_write_buffer_limits(high=100 * SIZE)
        for _ in range(20):
            client.transport.write(bytes(SIZE))
        await asyncio.sleep(0.05)  # what the peer takes without reading
        client.transport.set_write_buffer_limits(high=client.transport.get_write_buffer_size() + room)
        with tempfile.TemporaryFile() as file:
            file.write(b"0123456789")
            file.seek(0)
            sending = asyncio.ensure_future(asyncio.get_running_loop().sendfile(client.transport, file))
            await asyncio.sleep(0.05)
            server.transport.resume_reading()
            assert await sending == 10
        await server.until(lambda: len(server.data) == 20 * SIZE + 10)
        await client.until(lambda: client.told.count("resume") == client.told.count("pause"))
        told = [what for what in client.told if what in ("pause", "resume")]
        assert told == ["pause", "resume"] * (len(told) // 2) and complaints == []

    return test


test_who_writes_a_file_behind_a_full_buffer_is_resumed_once = sends_a_file_behind(-5)
test_who_gets_a_full_buffer_back_from_sendfile_is_paused_first = sends_a_file_behind(5)


@on_each
async def test_a_protocol_that_leaves_paused_and_comes_back_is_resumed(client, server, complaints):
    server.transport.pause_reading()
    client.transport.set_write_buffer_limits(high=SIZE)
    for _ in range(20):
        client.transport.write(bytes(SIZE))
    await client.until(lambda: "pause" in client.told)
    client.transport.set_protocol(asyncio.Protocol())
    client.transport.set_protocol(client)
    server.transport.resume_reading()
    await client.until(lambda: client.told.count("resume") == 1)
    assert complaints == []


@on_each
async def test_names_are_tuples_of_host_and_port(client, server, complaints):
    one, other = client.transport.get_extra_info, server.transport.get_extra_info
    assert one("peername") == other("sockname") and one("sockname") == other("peername")
    assert one("peername")[0] == "127.0.0.1" and one("no such thing", 5) == 5 and one("sslcontext") is None


# --- servers ---


@pytest.mark.parametrize("kind", ["tcp", "esdp"])
def test_a_server_serves_when_it_is_told_to(kind):
    async def main():
        loop = asyncio.get_running_loop()
        async with esdp.aio.Context(fabric="qpip") as context:
            options = {"context": context} if kind == "esdp" else {}
            over = esdp.streams if kind == "esdp" else loop
            taken = []

            def serve():
                taken.append(Recorder())
                return taken[-1]

            server = await over.create_server(serve, "localhost", 0, start_serving=False, **options)
            assert not server.is_serving() and server.get_loop() is loop
            await server.start_serving()
            assert server.is_serving() and server.sockets[0].getsockname()[0] in ("127.0.0.1", "::1")
            forever = asyncio.ensure_future(server.serve_forever())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError):
                await server.serve_forever()
            port = server.sockets[0].getsockname()[1]
            transport, protocol = await over.create_connection(Recorder, "localhost", port, **options)
            while not taken:  # one that waits in the backlog ends with the server
                await asyncio.sleep(0.001)
            server.close()
            assert not server.is_serving() and server.sockets == ()
            with pytest.raises(asyncio.CancelledError):
                await forever
            with pytest.raises(ConnectionRefusedError):
                await over.create_connection(Recorder, "localhost", port, **options)
            assert not protocol.lost.done(), "connections outlive their server"
            transport.abort()

    run(main())


def test_a_server_listens_at_several_hosts():
    async def main():
        async with esdp.aio.Context(fabric="qpip") as context:
            for host in (["127.0.0.1", "::1"], None):
                async with await esdp.streams.create_server(Recorder, host, 0, context=context) as server:
                    for socket in server.sockets:
                        there = "::1" if socket.family == 10 else "127.0.0.1"
                        address = (there, socket.getsockname()[1])
                        transport, protocol = await esdp.streams.create_connection(Recorder, *address, context=context)
                        assert transport.get_extra_info("peername")[:2] == address
                        transport.abort()
                        await protocol.lost

    run(main())


def test_what_a_protocol_factory_raises_costs_one_connection():
    async def main():
        loop, complaints, tries = asyncio.get_running_loop(), asyncio.Queue(), []
        loop.set_exception_handler(lambda loop, context: complaints.put_nowait(context))

        def factory():
            tries.append(1)
            if len(tries) == 1:
                raise ArithmeticError
            return Recorder()

        async with esdp.aio.Context(fabric="qpip") as context:
            async with await esdp.streams.create_server(factory, "127.0.0.1", 0, context=context) as server:
                _, first = await esdp.streams.create_connection(Recorder, server.address, context=context)
                assert isinstance((await complaints.get())["exception"], ArithmeticError)
                assert isinstance(await first.lost, ConnectionError)
                transport, second = await esdp.streams.create_connection(Recorder, server.address, context=context)
                while not server._transports:
                    await asyncio.sleep(0.001)
                transport.abort()
                await second.lost

    run(main())


def test_a_context_of_its_own_ends_with_the_last_connection():
    async def main():
        server = await esdp.streams.create_server(Recorder, "127.0.0.1", 0, fabric="qpip")
        transport, protocol = await esdp.streams.create_connection(Recorder, server.address, fabric="qpip")
        contexts = [weakref.ref(server._context), weakref.ref(transport._context)]
        server.close()
        while contexts[0]()._context.stats().sockets > 1:
            await asyncio.sleep(0.001)
        for accepted in list(server._transports):
            accepted.abort()
        assert isinstance(await protocol.lost, ConnectionError)
        end = time.monotonic() + LIMIT
        while not all(context().closed for context in contexts) and time.monotonic() < end:
            await asyncio.sleep(0.001)
        assert all(context().closed for context in contexts)
        del server, transport, protocol
        gc.collect()

    run(main())


@pytest.mark.parametrize("name", ["ssl", "sock"])
def test_what_is_not_there_is_refused(name):
    async def main():
        for create in (esdp.streams.create_connection, esdp.streams.create_server):
            with pytest.raises(ValueError, match=name):
                await create(Recorder, "127.0.0.1", 0, fabric="qpip", **{name: True})

    run(main())
