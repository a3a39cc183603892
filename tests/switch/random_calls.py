#!/usr/bin/env python3
"""A program that does to its connections what a seed says, and prints what came of it: `random_calls SEED STEPS`.

What it prints is the same however its connections are carried, and however slow the machine is. Bytes are compared before
they are told of, so that a line says only whether they were right.
"""

import contextlib
import errno
import fcntl
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

WITHIN = 30  # seconds that a wait may last


def error(caught):
    return errno.errorcode.get(caught.errno, "timeout")


class Ends:
    """The ways to read and write, each for as many bytes as it is told; by a generator of its own, so that a thread has one."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def bytes(self, *lengths):
        return self.random.randbytes(self.random.choice(lengths))

    def take(self, end, count, ways=("waitall", "into", "msg", "epoll", "poll", "select", "peek", "read", "file")):
        """Up to `count` bytes, fewer where the end comes before."""
        end.setblocking(True)
        first = end.recv(1, socket.MSG_PEEK) if (way := self.random.choice(ways)) == "peek" else b""
        got = b""
        with contextlib.ExitStack() as stack:
            read = getattr(self, "_by_" + way)(end, stack)
            while len(got) < count and (more := read(count - len(got))):
                got += more
        end.setblocking(True)
        return got if got.startswith(first) else b"looked ahead otherwise"

    def _by_waitall(self, end, _):
        return lambda count: end.recv(count, socket.MSG_WAITALL)

    def _by_peek(self, end, _):
        return end.recv

    def _by_msg(self, end, _):
        return lambda count: end.recvmsg(count)[0]

    def _by_read(self, end, _):
        return lambda count: os.read(end.fileno(), count)

    def _by_file(self, end, stack):
        return stack.enter_context(end.makefile("rb", buffering=0)).read

    def _by_into(self, end, _):
        def read(count):
            memory = bytearray(self.random.randint(1, count))
            return bytes(memory[: end.recv_into(memory)])

        return read

    def _by_poll(self, end, _):
        poll = select.poll()
        poll.register(end, select.POLLIN)
        return lambda count: end.recv(count) if poll.poll(WITHIN * 1000) else b""

    def _by_select(self, end, _):
        return lambda count: end.recv(self.random.randint(1, count)) if select.select([end], [], [], WITHIN)[0] else b""

    def _by_epoll(self, end, stack):
        end.setblocking(False)
        epoll = stack.enter_context(select.epoll())
        epoll.register(end, select.EPOLLIN | self.random.choice([0, select.EPOLLET]))

        def read(count):
            while True:
                try:
                    return end.recv(count)
                except BlockingIOError:
                    if not epoll.poll(WITHIN):
                        return b""

        return read

    def give(self, end, data):
        end.setblocking(True)
        way = self.random.choice(["sendall", "send", "write", "sendmsg", "sendfile", "nonblocking"])
        with contextlib.ExitStack() as stack:
            write = getattr(self, "_to_" + way)(end, data, stack)
            at = 0
            while at < len(data):
                at += write(at)
        end.setblocking(True)

    def _to_sendall(self, end, data, _):
        return lambda at: len(data) if end.sendall(data[at:]) is None else 0

    def _to_send(self, end, data, _):
        return lambda at: end.send(data[at : at + self.random.randint(1, 50000)])

    def _to_write(self, end, data, _):
        return lambda at: os.write(end.fileno(), data[at:])

    def _to_sendmsg(self, end, data, _):
        return lambda at: end.sendmsg([data[at : (at + len(data)) // 2], data[(at + len(data)) // 2 :]])

    def _to_sendfile(self, end, data, stack):
        file = stack.enter_context(os.fdopen(os.memfd_create("data"), "wb", buffering=0))
        file.write(data)
        return lambda at: os.sendfile(end.fileno(), file.fileno(), at, len(data) - at)

    def _to_nonblocking(self, end, data, _):
        end.setblocking(False)

        def write(at):
            while True:
                try:
                    return end.send(data[at:])
                except BlockingIOError:
                    select.select([], [end], [], WITHIN)

        return write


@contextlib.contextmanager
def in_thread(body, *arguments):
    """Yields a list, which has what the body gave back, or the error that ended it, behind the block."""
    result = []

    def run():
        try:
            result.append(body(*arguments))
        except OSError as caught:
            result.append(error(caught))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield result
    thread.join(WITHIN)
    if thread.is_alive():
        result.append("goes on")


def in_child(body):
    """The number of a process that runs the body and ends with 0 if that gave back something true."""
    number = os.fork()
    if number != 0:
        return number
    code = 4
    try:
        signal.alarm(WITHIN)
        code = 0 if body() else 3
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def code_of(number):
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


class Program:
    """Has some connections, of which both ends are here."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.pairs = []

    def ends(self):
        return Ends(self.random.getrandbits(32))

    def step(self):
        """A line that says what was done and what came of it."""
        if not self.pairs or (len(self.pairs) < 4 and self.random.random() < 0.25):
            return "connect", self.connect()
        name = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        pair = self.random.choice(self.pairs)
        one, other = pair if self.random.random() < 0.5 else pair[::-1]
        closes = name in CLOSE
        result = getattr(self, name)(one, other)
        if closes:
            self.pairs.remove(pair)
            one.close()
            other.close()
        return name, self.pairs.index(pair) if not closes else "closed", result

    def connect(self):
        client = socket.create_connection(self.listener.getsockname())
        server, _ = self.listener.accept()
        client.sendall(b"hello")
        greeted = server.recv(5, socket.MSG_WAITALL)
        server.sendall(b"there")
        self.pairs.append([client, server])
        return greeted, client.recv(5, socket.MSG_WAITALL)

    # --- bytes ---

    def small(self, one, other):
        data = self.ends().bytes(1, 2, 10, 100, 1000, 4000)
        self.ends().give(one, data)
        return len(data), self.ends().take(other, len(data)) == data

    def big(self, one, other):
        data = self.ends().bytes(20000, 65536, 100001, 300000, 1 << 20)
        with in_thread(self.ends().take, other, len(data)) as took:
            one.setblocking(True)
            one.sendall(data)
        return len(data), took == [data]

    def both_ways(self, one, other):
        data = self.ends().bytes(100, 50000, 200000)
        for end in (one, other):
            end.setblocking(True)
        with in_thread(one.sendall, data), in_thread(other.sendall, data):
            with in_thread(one.recv, len(data), socket.MSG_WAITALL) as there:
                back = other.recv(len(data), socket.MSG_WAITALL)
        return len(data), there == [data], back == data

    def nothing_comes(self, one, _):
        one.settimeout(0.05)
        try:
            return one.recv(1)
        except OSError as caught:
            return error(caught)
        finally:
            one.setblocking(True)

    def ready(self, one, other):
        self.ends().give(one, b"r")
        readable = select.select([other], [], [], WITHIN)[0] == [other]
        return readable, select.select([], [one], [], WITHIN)[1] == [one], self.ends().take(other, 1)

    def names(self, one, other):
        met = one.getpeername() == other.getsockname() and other.getpeername() == one.getsockname()
        return met, one.family, one.type, one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), fcntl.fcntl(one, fcntl.F_GETFD)

    # --- numbers and processes ---

    def duplicate(self, one, _):
        copy = os.dup(one.fileno())
        if self.random.random() < 0.5:
            os.dup2(one.fileno(), copy)
        number = one.detach()
        if self.random.random() < 0.5:
            os.close(number)
            number = copy
        else:
            os.close(copy)
        one.__init__(fileno=number)

    def child_talks(self, one, other):
        asks, answer = self.ends().bytes(1, 100, 5000), self.ends().bytes(1, 100, 5000)
        ends, closes = self.ends(), self.random.random() < 0.5

        def talk():
            ends.give(one, asks)
            right = ends.take(one, len(answer)) == answer
            if closes:
                one.close()
            return right

        child = in_child(talk)
        right = self.ends().take(other, len(asks)) == asks
        self.ends().give(other, answer)
        return right, code_of(child)

    def child_takes_over(self, one, other):
        """And echoes until the end."""

        def echo():
            for each in {end for pair in self.pairs for end in pair} - {one}:
                each.close()
            one.setblocking(True)
            while data := one.recv(1000):
                one.sendall(data)
            one.close()
            return True

        child = in_child(echo)
        one.close()
        right = []
        for _ in range(self.random.randint(1, 3)):
            data = self.ends().bytes(1, 100, 5000)
            self.ends().give(other, data)
            right.append(self.ends().take(other, len(data)) == data)
        if self.random.random() < 0.5:
            other.shutdown(socket.SHUT_WR)
            right.append(other.recv(10))
        other.close()
        return right, code_of(child)

    def child_connects(self, one, other):
        data, ends, tells = self.ends().bytes(1, 100, 5000), self.ends(), self.random.random() < 0.5

        def connect():
            own = socket.create_connection(self.listener.getsockname())
            ends.give(own, data)
            right = ends.take(own, len(data)) == data
            if tells:
                ends.give(one, b"!")
            own.close()
            return right

        child = in_child(connect)
        server, _ = self.listener.accept()
        came = self.ends().take(server, len(data))
        self.ends().give(server, came)
        end = server.recv(1)
        server.close()
        return came == data, end, code_of(child), self.ends().take(other, 1) if tells else None

    def child_accepts(self, _one, _other):
        data, ends = self.ends().bytes(1, 100, 5000), self.ends()

        def accept():
            server, _ = self.listener.accept()
            ends.give(server, ends.take(server, len(data)))
            return server.recv(1) == b""

        child = in_child(accept)
        client = socket.create_connection(self.listener.getsockname())
        self.ends().give(client, data)
        back = self.ends().take(client, len(data))
        client.shutdown(socket.SHUT_WR)
        end = client.recv(1)
        client.close()
        return back == data, end, code_of(child)

    def program_talks(self, one, other):
        data = self.ends().bytes(1, 100, 5000)
        words = ["dd", f"bs={len(data)}", "count=1", "iflag=fullblock", "status=none"]
        program = subprocess.Popen(words, stdin=one.fileno(), stdout=one.fileno())
        self.ends().give(other, data)
        back = self.ends().take(other, len(data))
        return back == data, program.wait(WITHIN)

    # --- ends ---

    def half_close(self, one, other):
        last, answer = self.ends().bytes(0, 1, 5000), self.ends().bytes(100)
        self.ends().give(one, last)
        one.shutdown(socket.SHUT_WR)
        came = self.ends().take(other, len(last) + 1, ("into", "msg", "read", "poll", "select"))
        self.ends().give(other, answer)
        back = self.ends().take(one, len(answer))
        try:
            sent = one.send(b"x")
        except OSError as caught:
            sent = error(caught)
        other.close()
        return came == last, back == answer, sent, one.recv(1)

    def close(self, one, other):
        one.close()
        return other.recv(1)

    def close_unread(self, one, other):
        self.ends().give(other, b"never read")
        select.select([one], [], [], WITHIN)
        one.close()
        return self.read_twice(other)

    def reset(self, one, other):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
        return self.read_twice(other)

    def read_twice(self, end):
        seen = []
        for _ in range(2):
            try:
                seen.append(end.recv(1))
            except OSError as caught:
                seen.append(error(caught))
        return seen

    def close_under_a_read(self, one, other):
        other.setblocking(True)
        with in_thread(other.recv, 10) as read:
            time.sleep(self.random.choice([0, 0.01]))
            one.close()
        return read


CLOSE = ("child_takes_over", "half_close", "close", "close_unread", "reset", "close_under_a_read")
WEIGHTS = {"small": 6, "big": 2, "both_ways": 2, "nothing_comes": 1, "ready": 2, "names": 1, "duplicate": 2, "child_talks": 2,
           "child_connects": 2, "child_accepts": 1, "program_talks": 1, **{name: 1 for name in CLOSE}}


def main():
    signal.alarm(4 * WITHIN)
    program = Program(int(sys.argv[1]))
    for number in range(int(sys.argv[2])):
        print(number, *program.step(), flush=True)


if __name__ == "__main__":
    main()
