#!/usr/bin/env python3
"""A program that makes single calls on its connections, as a seed says, and prints what each answers: `single_calls SEED STEPS`.

Between two calls it waits until both ends show what the calls before them have led to, so that the answers are the same
however the connections are carried, and however slow the machine is.
"""

import array
import contextlib
import errno
import fcntl
import os
import random
import select
import socket
import stat
import struct
import sys
import termios
import time
import zlib

WITHIN = 10  # seconds until the ends show what was done
FULL = 20000  # bytes that lie unread at most
ASKED = select.POLLIN | select.POLLOUT | select.POLLRDHUP | select.POLLPRI
BITS = ("POLLIN", "POLLPRI", "POLLOUT", "POLLERR", "POLLHUP", "POLLNVAL", "POLLRDHUP")
LINGER, TIMES = struct.pack("ii", 1, 7), struct.pack("ll", 0, 20000)
OPTIONS = {  # and what they are set to
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE): (0, 1),
    (socket.SOL_SOCKET, socket.SO_OOBINLINE): (0, 1),
    (socket.SOL_SOCKET, socket.SO_REUSEADDR): (0, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY): (0, 1),
    (socket.IPPROTO_TCP, socket.TCP_CORK): (0,),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): (30, 60),
    (socket.IPPROTO_IP, socket.IP_TOS): (0, 8),
}
SHOWN = [(socket.SOL_SOCKET, getattr(socket, "SO_" + name)) for name in ("TYPE", "DOMAIN", "PROTOCOL", "ACCEPTCONN", "ERROR")]


def names_of(bits):
    return [name for name in BITS if bits & getattr(select, name)]


def readable(end):
    """Bytes that lie there."""
    count = array.array("i", [0])
    fcntl.ioctl(end, termios.FIONREAD, count)
    return count[0]


class End:
    """One end, and what it is to show."""

    def __init__(self, its):
        self.socket = its
        self.other = None
        self.unread = 0  # bytes that have been sent to it
        self.input_ended = self.output_ended = False
        self.has_moved = False  # a byte

    def bits(self):
        poll = select.poll()
        poll.register(self.socket, ASKED)
        return sum(bits for _, bits in poll.poll(0))

    def looks(self):
        """What it shows, and whether that is what it is to show."""
        unread, bits = readable(self.socket), self.bits()
        ready = bool(bits & select.POLLIN) == (self.unread > 0 or self.input_ended)
        right = ready and unread == self.unread and bool(bits & select.POLLRDHUP) == self.input_ended
        return (unread, names_of(bits)), right


class Calls:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.listeners = [socket.create_server(("127.0.0.1", 0)), socket.create_server(("::1", 0), family=socket.AF_INET6)]
        self.pairs = []
        self.calls = [name for name in dir(self) if name.startswith("call_")]
        self.ends = [name for name in dir(self) if name.startswith("end_")]

    def step(self):
        """What was done, and what came of it."""
        if not self.pairs or (len(self.pairs) < 3 and self.random.random() < 0.1):
            name = self.random.choice([name for name in dir(self) if name.startswith("connect_")])
            return name, self.answer(getattr(self, name), self.random.choice(self.listeners))
        pair = self.random.choice(self.pairs)
        end = self.random.choice(pair)
        ends = self.random.random() < 0.05
        name = self.random.choice(self.ends if ends else self.calls)
        answer = self.answer(getattr(self, name), end)
        if ends:
            self.pairs.remove(pair)
            for each in pair:
                each.socket.close()
        return name, self.pairs.index(pair) if not ends else "over", answer, ends or self.settle(pair)

    def answer(self, call, *arguments):
        try:
            return call(*arguments)
        except OSError as caught:
            return errno.errorcode.get(caught.errno, str(caught))

    def settle(self, pair):
        """What both show; waits until it is what they are to show."""
        until = time.monotonic() + WITHIN
        while True:
            shown, right = zip(*(end.looks() for end in pair))
            if all(right) or time.monotonic() > until:
                return shown
            time.sleep(0.0002)

    def make(self, client, listener):
        server, address = listener.accept()
        pair = [End(client), End(server)]
        pair[0].other, pair[1].other = pair[1], pair[0]
        self.pairs.append(pair)
        met = address == client.getsockname() and server.getpeername() == address
        return met, client.getpeername() == server.getsockname() == listener.getsockname(), self.settle(pair)

    # --- connect ---

    def connect_waiting(self, listener):
        client = socket.socket(listener.family)
        client.connect(listener.getsockname())
        return self.make(client, listener)

    def connect_without_waiting(self, listener):
        client = socket.socket(listener.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        first = errno.errorcode.get(client.connect_ex(listener.getsockname()))
        select.select([], [client], [], WITHIN)
        error, made = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), self.make(client, listener)
        again = [errno.errorcode.get(client.connect_ex(listener.getsockname())) for _ in range(2)]
        return first, error, made, again, fcntl.fcntl(client, fcntl.F_GETFL)

    def connect_from_an_address(self, listener):
        client = socket.socket(listener.family)
        client.bind((listener.getsockname()[0], 0))
        before = client.getsockname()
        client.connect(listener.getsockname())
        return before == client.getsockname(), self.make(client, listener)

    def connect_with_options(self, listener):
        client = socket.socket(listener.family)
        (level, name), values = self.random.choice(list(OPTIONS.items()))
        client.setsockopt(level, name, values[-1])
        client.connect(listener.getsockname())
        return name, client.getsockopt(level, name), self.make(client, listener)

    def connect_to_nobody(self, listener):
        with socket.create_server((listener.getsockname()[0], 0), family=listener.family) as gone:
            address = gone.getsockname()
        with socket.socket(listener.family) as client:
            return self.answer(client.connect, address), self.answer(client.getpeername), names_of(End(client).bits())

    # --- bytes ---

    def data(self, end):
        data = self.random.randbytes(self.random.choice([0, 1, 5, 100, 1000, 4000]))
        return data[: FULL - end.other.unread]

    def sent(self, end, count):
        end.other.unread += count
        end.has_moved = end.has_moved or count > 0
        return count

    def taken(self, end, data):
        end.unread -= len(data)
        end.has_moved = end.has_moved or len(data) > 0
        return len(data), zlib.crc32(data)

    def some(self, end):
        """How much a read asks for, and whether it would wait for good."""
        return self.random.choice([1, 10, 100, 5000]), not end.unread and not end.input_ended

    def call_send(self, end):
        flags = self.random.choice([0, socket.MSG_DONTWAIT, socket.MSG_NOSIGNAL])
        return self.sent(end, end.socket.send(self.data(end), flags))

    def call_write(self, end):
        return self.sent(end, os.write(end.socket.fileno(), self.data(end)))

    def call_writev(self, end):
        data = self.data(end)
        return self.sent(end, os.writev(end.socket.fileno(), [data[:1], b"", data[1:]]))

    def call_sendmsg(self, end):
        data = self.data(end)
        return self.sent(end, end.socket.sendmsg([data[:10], data[10:]]))

    def call_sendto(self, end):
        return self.sent(end, end.socket.sendto(self.data(end), end.other.socket.getsockname()))

    def call_sendfile(self, end):
        with os.fdopen(os.memfd_create("data"), "wb", buffering=0) as file:
            file.write(data := self.data(end))
            return self.sent(end, os.sendfile(end.socket.fileno(), file.fileno(), 0, len(data)))

    def call_splice(self, end):
        with contextlib.ExitStack() as stack:
            here, there = (stack.enter_context(os.fdopen(number, mode, buffering=0)) for number, mode in zip(os.pipe(), ("rb", "wb")))
            there.write(data := self.data(end))
            return self.sent(end, os.splice(here.fileno(), end.socket.fileno(), len(data))) if data else 0

    def call_recv(self, end):
        size, waits = self.some(end)
        flags = socket.MSG_DONTWAIT if waits else self.random.choice([0, socket.MSG_DONTWAIT, socket.MSG_PEEK])
        data = end.socket.recv(self.random.choice([0, size]) if waits else size, flags)
        return (len(data), zlib.crc32(data)) if flags == socket.MSG_PEEK else self.taken(end, data)

    def call_recv_all(self, end):
        size = self.random.randint(0, end.unread)
        return self.taken(end, end.socket.recv(size, socket.MSG_WAITALL)) if size else None

    def call_read(self, end):
        size, waits = self.some(end)
        return None if waits else self.taken(end, os.read(end.socket.fileno(), size))

    def call_readv(self, end):
        size, waits = self.some(end)
        if waits:
            return None
        parts = [bytearray(1), bytearray(size)]
        count = os.readv(end.socket.fileno(), parts)
        return self.taken(end, b"".join(parts)[:count])

    def call_recvmsg(self, end):
        size, waits = self.some(end)
        data, other, flags, address = end.socket.recvmsg(size, 100, socket.MSG_DONTWAIT if waits else 0)
        return self.taken(end, data), other, flags, address

    def call_recvfrom(self, end):
        size, waits = self.some(end)
        data, address = end.socket.recvfrom(size, socket.MSG_DONTWAIT if waits else 0)
        return self.taken(end, data), address

    def call_splice_out(self, end):
        end.socket.setblocking(True)  # in direct mode its bytes are on their way to where they can be had so
        here, there = os.pipe()
        try:
            size, waits = self.some(end)
            count = 0 if waits else os.splice(end.socket.fileno(), there, size)
            return self.taken(end, os.read(here, count) if count else b"")
        finally:
            os.close(here)
            os.close(there)

    def call_wait_for_too_long(self, end):
        if end.unread or end.input_ended:
            return None
        end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, TIMES)
        try:
            return self.answer(end.socket.recv, 1)
        finally:
            end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(16))

    # --- what they tell of themselves ---

    def call_option(self, end):
        (level, name), values = self.random.choice(list(OPTIONS.items()))
        end.socket.setsockopt(level, name, self.random.choice(values))
        return name, end.socket.getsockopt(level, name)

    def call_shown(self, end):
        return [end.socket.getsockopt(*each) for each in SHOWN]

    def call_linger(self, end):
        end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        seen = end.socket.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
        end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))
        return seen == LINGER

    def call_unknown_options(self, end):
        wrong = [(socket.SOL_SOCKET, 4711), (socket.IPPROTO_TCP, 4711), (4711, 1)]
        short = self.answer(end.socket.setsockopt, socket.SOL_SOCKET, socket.SO_KEEPALIVE, b"1")
        return [self.answer(end.socket.getsockopt, *each) for each in wrong], short

    def call_times(self, end):
        end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, TIMES)
        seen = end.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16)
        end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bytes(16))
        return seen == TIMES

    def call_names(self, end):
        ended = end.input_ended and end.output_ended  # TCP does not know its peer then any more
        return ended or end.socket.getsockname() == end.other.socket.getpeername()

    def call_flags(self, end):
        flags = fcntl.fcntl(end.socket, fcntl.F_GETFL)
        fcntl.fcntl(end.socket, fcntl.F_SETFL, flags ^ os.O_NONBLOCK)
        changed = fcntl.fcntl(end.socket, fcntl.F_GETFL)
        fcntl.ioctl(end.socket, termios.FIONBIO, struct.pack("i", 0))
        return flags, changed, fcntl.fcntl(end.socket, fcntl.F_GETFL), fcntl.fcntl(end.socket, fcntl.F_GETFD)

    def call_status(self, end):
        status = os.fstat(end.socket.fileno())
        return stat.S_IFMT(status.st_mode), status.st_size, os.readlink("/proc/self/fd/%d" % end.socket.fileno()).split(":")[0]

    def call_select(self, end):
        if not end.has_moved:  # it may be shown as readable for the request
            return None
        return [[each == end.socket for each in ready] for ready in select.select([end.socket], [end.socket], [end.socket], 0)]

    def call_epoll(self, end):
        if not end.has_moved:
            return None
        with select.epoll() as epoll:
            epoll.register(end.socket, ASKED | self.random.choice([0, select.EPOLLET, select.EPOLLONESHOT]))
            twice = self.answer(epoll.register, end.socket, ASKED)
            first, then = epoll.poll(0), epoll.poll(0)
            return twice, [[names_of(bits) for _, bits in told] for told in (first, then)]

    # --- what they refuse ---

    def call_connected_already(self, end):
        address = self.listeners[0].getsockname()
        bound = end.input_ended and end.output_ended or self.answer(end.socket.bind, ("127.0.0.1", 0))
        return self.answer(end.socket.connect, address), bound

    def call_no_file(self, end):
        number = end.socket.fileno()
        calls = [
            lambda: os.lseek(number, 0, os.SEEK_SET),
            lambda: os.pread(number, 1, 0),
            lambda: os.pwrite(number, b"x", 0),
            lambda: os.ftruncate(number, 0),
            lambda: os.fsync(number),
            end.socket.accept,
        ]
        return [self.answer(call) for call in calls]

    # --- numbers and halves ---

    def call_duplicate(self, end):
        copy = end.socket.dup()
        (end.socket if self.random.random() < 0.5 else copy).close()
        end.socket = copy if end.socket.fileno() < 0 else end.socket
        return fcntl.fcntl(end.socket, fcntl.F_GETFD)

    def call_shut_down_writing(self, end):
        if self.random.random() < 0.6:
            return None
        end.socket.shutdown(socket.SHUT_WR)
        end.output_ended = end.other.input_ended = True
        return self.answer(end.socket.send, b"x")

    # --- how they end: of a pair that is no more behind it ---

    def rest(self, end):
        """All that it still reads."""
        end.socket.settimeout(WITHIN)
        seen = [self.answer(lambda: zlib.crc32(end.socket.recv(FULL, socket.MSG_WAITALL)))]
        return seen + [self.answer(lambda: end.socket.recv(1))]

    def end_close(self, end):
        if end.unread:
            return self.reset(end)
        end.socket.close()
        return self.rest(end.other)

    def end_reset(self, end):
        end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return self.reset(end)

    def reset(self, end):
        """By a close. What the other has not read by then may be lost; and what has ended may show another end than TCP does."""
        other = end.other
        if other.unread:
            other.socket.recv(FULL)
        end.socket.close()
        if other.input_ended:
            return None
        poll = select.poll()
        poll.register(other.socket, 0)
        poll.poll(WITHIN * 1000)
        bits = other.output_ended or names_of(other.bits())
        return bits, self.answer(lambda: other.socket.recv(1)), self.answer(lambda: other.socket.recv(1))

    def end_shut_down(self, end):
        end.socket.shutdown(socket.SHUT_RDWR)
        return self.rest(end.other), self.answer(lambda: end.socket.send(b"x"))


def main():
    seed, steps = map(int, sys.argv[1:])
    calls = Calls(seed)
    for number in range(steps):
        print(number, *calls.step(), flush=True)


if __name__ == "__main__":
    main()
