"""asyncio's streams and protocols over esdp."""

import asyncio
import os

import esdp
import esdp.aio
import esdp.streams
import pytest
from conftest import FABRICS
from aio_test import connected, run
from closing_test import run_python


def with_server(serve, body):
    """Runs body(address, context) beside a server, on each fabric."""

    @pytest.mark.parametrize("fabric", FABRICS)
    def test(fabric):
        async def main():
            async with esdp.aio.Context(fabric=fabric) as context:
                async with await esdp.streams.start_server(serve, "127.0.0.1:0", context=context) as server:
                    await body(server.address, context)

        run(main())

    return test


async def echo_lines(reader, writer):
    async for line in reader:
        writer.write(line)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def lines(address, context):
    reader, writer = await esdp.streams.open_connection(address, context=context)
    writer.writelines([b"first\n", b"second\n", b"x" * 30_000 + b"\n"])
    assert await reader.readline() == b"first\n"
    assert await reader.readuntil(b"\n") == b"second\n"
    assert await reader.readexactly(30_001) == b"x" * 30_000 + b"\n"
    assert writer.get_extra_info("peername") == address
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


test_lines_come_back = with_server(echo_lines, lines)


async def echo_everything(reader, writer):
    while data := await reader.read(100_000):
        writer.write(data)
        await writer.drain()
    writer.close()


async def echo_at_the_end(reader, writer):
    writer.write(await reader.read())
    await writer.drain()
    writer.close()


async def large(address, context):
    """Small writes, large ones that go zero-copy, and memory that changes after it was written, in one stream."""
    reader, writer = await esdp.streams.open_connection(address, context=context)
    changing = bytearray(os.urandom(1000))
    pieces = [os.urandom(10), os.urandom(esdp.streams.ZERO_COPY_MIN), bytes(changing), os.urandom(600_000), b"end"]

    async def write():
        for piece in pieces:
            if piece == bytes(changing):
                writer.write(changing)
                changing[:] = bytes(1000)
            else:
                writer.write(piece)
            await writer.drain()
        writer.write_eof()

    writing = asyncio.ensure_future(write())
    assert await reader.read() == b"".join(pieces)
    await writing
    stats = writer.get_extra_info("esdp_socket").stats()
    writer.close()
    await writer.wait_closed()
    return stats


# Both directions at once: a side that holds an advert and has no room for it does not make one of its own.
test_a_long_stream_comes_back_whole = with_server(echo_everything, large)


async def large_one_way(address, context):
    stats = await large(address, context)
    assert stats.bytes_sent_zero_copy > 600_000 + esdp.streams.ZERO_COPY_MIN - 10


test_long_writes_go_zero_copy = with_server(echo_at_the_end, large_one_way)


async def hold(reader, writer):
    await reader.read(1)
    await asyncio.sleep(0.05)
    assert len(await reader.read(-1)) == 999_999
    writer.close()


async def slow_reader(address, context):
    reader, writer = await esdp.streams.open_connection(address, context=context)
    for _ in range(100):
        writer.write(bytes(10_000))
    assert writer.transport.get_write_buffer_size() > 100_000
    await writer.drain()
    assert writer.transport.get_write_buffer_size() <= 65_536
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()


test_a_writer_waits_for_a_slow_reader = with_server(hold, slow_reader)


def test_a_connection_that_breaks_is_told_to_both():
    async def main():
        broken = asyncio.get_running_loop().create_future()

        async def serve(reader, writer):
            try:
                await reader.read()
            except ConnectionError as error:
                broken.set_result(error)
            writer.close()

        async with await esdp.streams.start_server(serve, "127.0.0.1:0", fabric="qpip") as server:
            _, writer = await esdp.streams.open_connection(server.address, fabric="qpip")
            writer.write(b"x")
            await writer.drain()
            writer.transport.abort()
            assert isinstance(await broken, ConnectionResetError)

    run(main())


@pytest.mark.parametrize("last", [
    "writer.close()",
    "writer.close(); await writer.wait_closed()",
    "writer.write(bytes(100_000)); writer.close()",
    "writer.transport.abort()",
    "reading = asyncio.ensure_future(reader.read()); await asyncio.sleep(0); writer.close()",
    "answering.set(); await asyncio.gather(reader.read(), return_exceptions=True); writer.close()",
    "pass",
])
def test_a_program_that_just_ends_is_told_of_no_error_that_it_did_not_ask_for(last):
    code, output = run_python(f"""
import asyncio, esdp.streams
async def main():
    answering = asyncio.Event()
    async def serve(reader, writer):
        await answering.wait()
        writer.transport.abort()
    server = await esdp.streams.start_server(serve, "127.0.0.1:0", fabric="qpip")
    reader, writer = await esdp.streams.open_connection(server.address, fabric="qpip")
    {last}
asyncio.run(main())
""")
    assert code == 0, output
    assert "never retrieved" not in output and "Traceback" not in output, output


def test_a_loop_that_ends_before_a_transport_hears_of_an_error_complains_of_nothing():
    code, output = run_python("""
import asyncio, esdp.streams
loop = asyncio.new_event_loop()
async def main():
    server = await esdp.streams.start_server(lambda *_: None, "127.0.0.1:0", fabric="qpip")
    return server, await esdp.streams.open_connection(server.address, fabric="qpip")
server, (reader, writer) = loop.run_until_complete(main())
transport = writer.transport
writer.write(bytes(100_000))
for operation in transport._receiving, transport._sending:
    operation.set_exception(OSError("at the last moment"))
loop.close()
""")
    assert code == 0, output
    assert "never retrieved" not in output, output


def test_a_connection_that_ends_leaves_no_task_to_a_loop_that_does_not_wait_for_it():
    async def main():
        async with esdp.aio.Context(fabric="qpip") as context:
            for end in ("close", "abort"):
                socket, peer = await connected(context)
                before = asyncio.all_tasks()
                transport = esdp.streams.Transport(context, socket, protocol := Told())
                await asyncio.sleep(0)
                transport.write(bytes(1000))
                getattr(transport, end)()
                while not protocol.lost.done():
                    assert asyncio.all_tasks() == before
                    await asyncio.sleep(0)
                peer.abort()

    run(main())


class Told(asyncio.Protocol):
    def __init__(self):
        self.lost = asyncio.get_running_loop().create_future()

    def connection_lost(self, error):
        self.lost.set_result(error)


def test_an_end_behind_that_of_the_context_leaves_memory_in_use_to_it():
    async def main():
        async with esdp.aio.Context(fabric="qpip") as context:
            socket, peer = await connected(context)
            transport = esdp.streams.Transport(context, socket, protocol := Told())
            await asyncio.sleep(0)
            assert context.core.stats().operations == 1, "it receives"
            context.close()
            transport.abort()
            assert await protocol.lost is None

    run(main())
