#!/usr/bin/python3
"""A chat for asyncio: the server passes each line on to everybody else.

chat.py --port 7474                 serves
chat.py --port 7474 --name Ada      talks: lines from standard input
"""

import argparse
import asyncio
import sys

import esdp.streams


class Room:
    """Who is there."""

    def __init__(self) -> None:
        self.writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        try:
            async for line in reader:
                others = self.writers - {writer}
                for other in others:
                    other.write(line)
                await asyncio.gather(*(other.drain() for other in others))
        except ConnectionError:
            pass  # gone without a word
        finally:
            self.writers.remove(writer)
            writer.close()


async def serve(port: int) -> None:
    async with await esdp.streams.start_server(Room().serve, ("127.0.0.1", port), fabric="qpip") as server:
        print("listening on %s:%d" % server.address, flush=True)
        await server.serve_forever()


async def show(reader: asyncio.StreamReader) -> None:
    async for line in reader:
        print(line.decode(), end="", flush=True)


async def talk(port: int, name: str) -> None:
    reader, writer = await esdp.streams.open_connection(("127.0.0.1", port), fabric="qpip")
    showing = asyncio.create_task(show(reader))
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        writer.write(f"{name}: {line}".encode())
        await writer.drain()
    writer.write_eof()
    await showing  # the server ends when it has passed on everything
    writer.close()
    await writer.wait_closed()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--name", default=None)
    arguments = parser.parse_args()
    asyncio.run(talk(arguments.port, arguments.name) if arguments.name else serve(arguments.port))


if __name__ == "__main__":
    main()
