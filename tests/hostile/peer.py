"""A peer of SDP over iWARP by hand: it says what a test tells it to, right or wrong, and hears what comes."""

import contextlib
import socket
import struct
import time

import wire

LIMIT = 120.0  # seconds for anything to come, on a slow machine and under a sanitizer


class Ended(Exception):
    """The other side has ended the connection, or rejected it."""


class Peer:
    """The connecting side, unless `stream` was accepted. What it has heard is in `messages`, oldest first."""

    KEY = 0x1234  # of all its own memory
    VA = 0x10000

    def __init__(self, port=None, *, source="127.0.0.1", stream=None, **greeting):
        self.stream = stream or socket.create_connection(("127.0.0.1", port), LIMIT, (source, 0))
        self.stream.settimeout(LIMIT)
        self.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.greeting = greeting
        self.crc = greeting.pop("crc", False)
        self.heard = b""  # bytes that are no whole frame yet
        self.ended = False
        self.terminate = None  # layer and type, code: as one number of 16 bits
        self.send_number = self.read_number = 1  # of messages, in DDP's queues
        self.sequence, self.ack, self.credits_end = 0, 0, 0
        self.messages, self.passed, self.requests, self.responses = [], [], [], b""
        self._message = b""
        self._held = None  # bytes that go together

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def close(self):
        self.stream.close()

    def reset(self):
        try:
            self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass  # it has ended already
        self.stream.close()

    # --- bytes ---

    @contextlib.contextmanager
    def together(self):
        """What is written meanwhile goes in one piece: the other side cannot answer the first of it before the rest."""
        self._held = b""
        yield
        data, self._held = self._held, None
        self.write(data)

    def write(self, data):
        if self._held is not None:
            self._held += data
            return
        try:
            self.stream.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            self.ended = True

    def _read_some(self):
        try:
            data = self.stream.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.heard += data
        self.ended = not data

    def read(self, size):
        while len(self.heard) < size:
            if self.ended:
                raise Ended
            self._read_some()
        data, self.heard = self.heard[:size], self.heard[size:]
        return data

    # --- set-up ---

    def port(self):
        return self.stream.getsockname()[1]

    def request(self):
        flags = wire.ENHANCED | (wire.WITH_CRC if self.crc else 0)
        return wire.startup(wire.REQUEST_KEY, wire.hello(self.port(), **self.greeting), flags=flags)

    def _read_startup(self):
        head = self.read(wire.STARTUP_BYTES)
        rest = self.read(int.from_bytes(head[18:20], "big"))
        if head[16] & wire.REJECTED:
            raise Ended
        self.theirs = rest[4:] if head[16] & wire.ENHANCED else rest
        self.token = wire.token_of(self.theirs)
        self._take_credits(int.from_bytes(self.theirs[2:4], "big"), 0)

    def read_reply(self):
        self._read_startup()
        return self

    def shake(self):
        """Up to the first message, which the connecting side owes on iWARP."""
        self.write(self.request())
        self.read_reply()
        self.say(wire.DATA)
        return self

    def answer(self):
        """The accepting side's part of it."""
        self._read_startup()
        self.write(wire.startup(wire.REPLY_KEY, wire.hello_ack(**self.greeting)))
        return self

    # --- to say ---

    def send(self, payload, **header):
        """A Send of RDMAP, whatever is in it."""
        opcode = wire.OP_SEND_INVALIDATE if "word" in header else wire.OP_SEND
        self.write(self.framed(wire.untagged(opcode, wire.QUEUE_SEND, self.send_number, payload, **header)))
        self.send_number += 1

    def framed(self, ulpdu):
        return wire.frame(ulpdu, crc=self.crc)

    def message(self, mid, body=b"", **fields):
        """The next message of SDP; `fields` in place of what would be right."""
        self.sequence = (self.sequence + 1) & 0xFFFFFFFF
        return wire.Message(mid, body, **{"sequence": self.sequence, "ack": self.ack, **fields})

    def say(self, mid, body=b"", **fields):
        self.send(self.message(mid, body, **fields).encode())

    def rdma_write(self, key, offset, payload):
        self.write(self.framed(wire.tagged(wire.OP_WRITE, key, offset, payload)))

    def ask_read(self, length, key, offset):
        self.write(self.framed(wire.read_request(self.read_number, self.KEY, self.VA, length, key, offset)))
        self.read_number += 1

    def rdma_read(self, length, key, offset):
        """Their memory, or Ended."""
        self.ask_read(length, key, offset)
        self.wait(lambda: len(self.responses) >= length)
        data, self.responses = self.responses[:length], self.responses[length:]
        return data

    def serve(self, data):
        """Answers the oldest READ that has come, from memory that begins with `data` at VA."""
        sink, at, length, _, source = self.requests.pop(0)
        payload = data[source - self.VA : source - self.VA + length]
        for done in range(0, length, 32768):
            piece, last = payload[done : done + 32768], done + 32768 >= length
            self.write(self.framed(wire.tagged(wire.OP_READ_RESPONSE, sink, at + done, piece, last=last)))

    # --- to hear ---

    def _take_credits(self, bufs, ack):
        self.credits_end = ack + bufs

    def credits(self):
        return self.credits_end - self.sequence

    def _take(self, ulpdu):
        segment = wire.Segment.decode(ulpdu)
        if segment.opcode == wire.OP_READ_RESPONSE:
            self.responses += segment.payload
        elif segment.queue == wire.QUEUE_READ:
            self.requests.append(struct.unpack(">IQIIQ", segment.payload))
        elif segment.queue == wire.QUEUE_TERMINATE:
            self.terminate = int.from_bytes(segment.payload[:2], "big")
        elif segment.queue == wire.QUEUE_SEND:
            self._message += segment.payload
            if segment.last:
                message, self._message = wire.Message.decode(self._message), b""
                self.ack = message.sequence
                self._take_credits(message.bufs, message.ack)
                self.messages.append(message)

    def hear(self):
        """Takes what comes next; False at the end."""
        while True:
            size = wire.frame_bytes(int.from_bytes(self.heard[:2], "big")) if len(self.heard) >= 2 else None
            if size is not None and len(self.heard) >= size:
                ulpdu = self.heard[2 : 2 + int.from_bytes(self.heard[:2], "big")]
                self.heard = self.heard[size:]
                if ulpdu:
                    self._take(ulpdu)
                return True
            if self.ended:
                return False
            self._read_some()

    def wait(self, done):
        until = time.monotonic() + LIMIT
        while not done():
            if not self.hear():
                raise Ended
            assert time.monotonic() < until, "waited in vain"

    def take(self, mid):
        """The first message of this kind; what came before is dropped."""
        self.wait(lambda: any(message.mid == mid for message in self.messages))
        while self.messages[0].mid != mid:
            self.messages.pop(0)
        return self.messages.pop(0)

    def wait_for_end(self):
        """Until the other side has ended it; what comes before is heard."""
        while self.hear():
            pass

    # --- what an honest peer does ---

    def collect(self, size):
        """So many bytes of the stream, in messages or read. Other messages that came go to `passed`."""
        data = b""
        while len(data) < size:
            self.wait(lambda: self.messages)
            message = self.messages.pop(0)
            if message.mid == wire.DATA:
                data += message.payload
            elif message.mid == wire.SRC_AVAIL:
                length, key, address = message.advert()
                data += self.rdma_read(length, key, address)
                self.say(wire.READ_COMPLETE, wire.u32(length - len(message.payload)))
            else:
                self.passed.append(message)
        return data

    def echo(self, data):
        """What comes back for it."""
        for at in range(0, len(data), 8192):
            self.wait(lambda: self.credits() >= 3)
            self.say(wire.DATA, data[at : at + 8192])
        return self.collect(len(data))
