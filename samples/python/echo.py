#!/usr/bin/python3
"""An echo server and its client: registered memory, posted operations, one event queue.

echo.py --port 7473                          serves, one client after the other
echo.py --port 7473 --text "anybody there?"  asks
"""

import argparse
from typing import Optional

import esdp

ROOM = 1 << 16


def serve(context: esdp.Context, port: int, clients: int) -> None:
    with context.queue() as queue, context.allocate(ROOM) as memory, context.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        print("listening on %s:%d" % listener.local, flush=True)
        for _ in range(clients):
            listener.accept(queue)
            with context.take_accepted(queue.get()[0].check()) as client:
                print("client served: %d bytes" % echo(client, queue, memory), flush=True)


def echo(client: esdp.Socket, queue: esdp.EventQueue, memory: esdp.Region) -> int:
    """Sends back what comes, from where it came to."""
    total = 0
    while True:
        client.recv(memory, queue)
        received = queue.get()[0].check()
        if received.bytes == 0:
            return total
        client.send(memory[: received.bytes], queue)
        total += queue.get()[0].check().bytes


def ask(context: esdp.Context, port: int, text: str) -> None:
    data = text.encode()
    answer = bytearray(len(data))
    with context.queue() as queue, context.register(answer) as memory, context.socket() as server:
        server.connect(("127.0.0.1", port), queue)
        queue.get()[0].check()
        server.recv(memory, queue, wait_all=True)
        server.send(data, queue)  # no region: it is copied
        for event in queue.get(min=2):
            event.check()
        print(answer.decode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--clients", type=int, default=1 << 30, help="how many to serve")
    parser.add_argument("--text", default=None)
    arguments = parser.parse_args()
    text: Optional[str] = arguments.text
    with esdp.Context(fabric="qpip") as context:
        if text is None:
            serve(context, arguments.port, arguments.clients)
        else:
            ask(context, arguments.port, text)


if __name__ == "__main__":
    main()
