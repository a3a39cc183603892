#!/usr/bin/python3
"""Draws throughput over the size of a send, copied and zero-copy, as a PNG.

throughput.py --output throughput.png
"""

import argparse
import time

import esdp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plot  # noqa: E402

SIZES = [1 << power for power in range(12, 21, 2)]
DEPTH = 8


class Stream:
    """Two ends of a connection in one process."""

    def __init__(self, context: esdp.Context) -> None:
        self.queue = context.queue(depth=4 * DEPTH)
        with context.socket() as listener:
            listener.bind("127.0.0.1:0")
            listener.listen()
            listener.accept(self.queue)
            self.left = context.socket()
            self.left.connect(listener.local, self.queue)
            (accepted,) = [event for event in self.queue.get(min=2) if event.has_connection]
            self.right = context.take_accepted(accepted)

    def measure(self, memory: esdp.Region, size: int, path: str, seconds: float) -> float:
        """Bytes a second, with DEPTH sends outstanding."""
        source, *targets = (memory[at : at + size] for at in range(0, len(memory), SIZES[-1]))
        outstanding, posted, moved, begun = 0, 0, 0, time.perf_counter()
        while True:
            running = time.perf_counter() - begun < seconds
            while running and outstanding < 2 * DEPTH:
                # Each receive that is outstanding has bytes of its own; they end in their order.
                self.right.recv(targets[posted % len(targets)], self.queue, wait_all=True)
                self.left.send(source, self.queue, path=path)  # type: ignore[arg-type]
                outstanding, posted = outstanding + 2, posted + 1
            if outstanding == 0:
                return moved / (time.perf_counter() - begun)
            for event in self.queue.get():
                outstanding -= 1
                moved += event.check().bytes if event.type == "recv" else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="throughput.png")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each point")
    arguments = parser.parse_args()
    with esdp.Context(fabric="qpip") as context:
        stream = Stream(context)
        with context.allocate((1 + 2 * DEPTH) * SIZES[-1]) as memory, stream.left, stream.right:
            for path in ("copy", "zero_copy"):
                rates = [stream.measure(memory, size, path, arguments.seconds) for size in SIZES]
                plot.plot(SIZES, [rate / 1e6 for rate in rates], marker="o", label=path)
                print("%-10s" % path, " ".join("%8.0f" % (rate / 1e6) for rate in rates), "MB/s")
    plot.xscale("log", base=2)
    plot.xlabel("bytes of a send")
    plot.ylabel("MB/s")
    plot.legend()
    plot.savefig(arguments.output)
    print("drawn:", arguments.output)


if __name__ == "__main__":
    main()
