#!/usr/bin/python3
"""What Python costs: 1 MiB transfers beside esdp_perf in C++, as the median of ratios, and 64-byte awaits a second.

    python_cost.py [--pairs 3] [--seconds 1]

Each ratio is of two runs one after the other, in the order A B B A. Python sends to an esdp_perf of its own kind: two
processes, eight sends of 1 MiB outstanding, zero-copy. The awaits are of one process, with a peer that takes what comes.
"""

import argparse
import asyncio
import collections
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "bindings/python"))  # of the runfiles

import esdp  # noqa: E402
import esdp.aio  # noqa: E402

SIZE = 1 << 20
DEPTH = 8
PERF = os.path.join(ROOT, "tools/esdp_perf/esdp_perf")


def receive(pipe):
    """The far process: takes 1 MiB after 1 MiB; tells bytes a second by its clock."""
    with esdp.Context(fabric="qpip") as context, context.queue() as queue, context.socket() as listener:
        listener.bind("127.0.0.1:0")
        listener.listen()
        pipe.send(listener.local)
        listener.accept(queue)
        with context.take_accepted(queue.get()[0].check()) as peer, context.allocate(SIZE * DEPTH) as memory:
            parts = [memory[i * SIZE : (i + 1) * SIZE] for i in range(DEPTH)]
            for part in parts:
                peer.recv(part, queue, part, wait_all=True)
            moved, begun, ended = 0, None, False
            while not ended:
                for event in queue.get():
                    event.check()
                    begun = begun or time.perf_counter()
                    moved += event.bytes
                    ended = ended or event.eof
                    if not ended:
                        peer.recv(event.cookie, queue, event.cookie, wait_all=True)
            pipe.send(moved / (time.perf_counter() - begun))
            while queue.outstanding:
                queue.get()


def python_rate(seconds):
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=receive, args=(there,))
    process.start()
    with esdp.Context(fabric="qpip") as context, context.queue() as queue, context.socket() as peer:
        peer.connect(here.recv(), queue)
        queue.get()[0].check()
        with context.allocate(SIZE * DEPTH) as memory:
            parts = [memory[i * SIZE : (i + 1) * SIZE] for i in range(DEPTH)]
            end = time.perf_counter() + seconds
            for part in parts:
                peer.send(part, queue, part)
            while queue.outstanding:
                for event in queue.get():
                    event.check()
                    if time.perf_counter() < end:
                        peer.send(event.cookie, queue, event.cookie)
            peer.shutdown(queue)
            queue.get()[0].check()
            rate = here.recv()
    process.join()
    return rate


def cpp_rate(seconds):
    server = subprocess.Popen([PERF, "--server", "--sessions", "1"], stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().split()[-1]
    options = ["--size", str(SIZE), "--depth", str(DEPTH), "--path", "zcopy", "--seconds", str(seconds)]
    command = [PERF, "--connect", "127.0.0.1", "--port", port, "--json", "--quiet", *options]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    server.communicate()
    return json.loads(result.stdout)["bytes_per_second"]


async def await_rates(seconds):
    """64-byte sends that are awaited: one at a time, and 32 outstanding."""
    async with esdp.aio.Context(fabric="qpip") as context, context.listen("127.0.0.1:0") as listener:
        accepting = asyncio.create_task(listener.accept())
        left = await context.connect(listener.address)
        right = await accepting
        memory = context.allocate(1 << 17)

        async def take():
            while await right.recv(memory[1 << 16 :]):
                pass

        taking = asyncio.create_task(take())
        piece = memory[:64]
        rates = [await one_at_a_time(left, piece, seconds), await many_outstanding(left, piece, seconds)]
        await left.shutdown()
        await taking
        await left.close()
        await right.close()
        return rates


async def one_at_a_time(socket, piece, seconds):
    count, begun = 0, time.perf_counter()
    while time.perf_counter() < begun + seconds:
        await socket.send(piece)
        count += 1
    return count / (time.perf_counter() - begun)


async def many_outstanding(socket, piece, seconds):
    count, begun, outstanding = 0, time.perf_counter(), collections.deque()
    while time.perf_counter() < begun + seconds:
        while len(outstanding) < 32:
            outstanding.append(socket.send(piece))
        await outstanding.popleft()
        count += 1
    for future in outstanding:
        await future
    return count / (time.perf_counter() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    ratios = []
    for number in range(arguments.pairs):
        order = (python_rate, cpp_rate) if number % 2 == 0 else (cpp_rate, python_rate)
        rates = {measure: measure(arguments.seconds) for measure in order}
        ratios.append(rates[python_rate] / rates[cpp_rate])
        print(f"1 MiB: Python {rates[python_rate] / 1e6:.0f} MB/s, C++ {rates[cpp_rate] / 1e6:.0f} MB/s", flush=True)
    print(f"1 MiB, Python / C++: {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f}); goal 0.90")
    alone, many = asyncio.run(await_rates(arguments.seconds))
    print(f"64-byte awaits, one at a time: {alone:.0f} a second; goal 20000")
    print(f"64-byte awaits, 32 outstanding: {many:.0f} a second; goal 100000")


if __name__ == "__main__":
    main()
