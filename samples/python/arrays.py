#!/usr/bin/python3
"""Two processes exchange NumPy arrays: each array is registered where it lies, and nobody copies it.

One process has the rows of a matrix, the other multiplies what it is sent; the product comes back the same way.
"""

import multiprocessing
from multiprocessing.connection import Connection

import esdp
import numpy

SHAPE = (512, 512)


def transfer(queue: esdp.EventQueue, count: int) -> int:
    """Waits for so many operations; gives how many bytes went without a copy."""
    return sum(event.check().bytes_zero_copy for event in queue.get(min=count))


def multiply(parent: Connection) -> None:
    """The other process: receives two matrices into one array, sends their product."""
    with esdp.Context(fabric="qpip") as context, context.queue() as queue, context.socket() as listener:
        listener.bind("127.0.0.1:0")
        listener.listen()
        parent.send(listener.local)
        listener.accept(queue)
        with context.take_accepted(queue.get()[0].check()) as peer:
            factors = numpy.empty((2, *SHAPE))
            with context.register(factors) as region:
                peer.recv(region, queue, wait_all=True)
                transfer(queue, 1)
            with context.register(factors[0] @ factors[1]) as region:
                peer.send(region, queue)
                transfer(queue, 1)


def main() -> None:
    ours, theirs = multiprocessing.Pipe()
    # Not forked: what a process opened is of no use to its children.
    process = multiprocessing.get_context("spawn").Process(target=multiply, args=(theirs,))
    process.start()
    left, right = numpy.random.default_rng(1).random((2, *SHAPE))
    product = numpy.empty(SHAPE)
    with esdp.Context(fabric="qpip") as context, context.queue() as queue, context.socket() as peer:
        peer.connect(ours.recv(), queue)
        transfer(queue, 1)
        with context.register(left) as a, context.register(right) as b, context.register(product) as c:
            peer.recv(c, queue, wait_all=True)
            peer.sendv([a, b], queue)
            zero_copy = transfer(queue, 2)
    process.join()
    assert numpy.allclose(product, left @ right)
    total = left.nbytes + right.nbytes + product.nbytes
    print(f"the product is right; {100 * zero_copy // total} % of {total} bytes went without a copy")


if __name__ == "__main__":
    main()
