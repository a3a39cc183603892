"""MPA, DDP, RDMAP and SDP as bytes: written from RFC 5044, 5041, 5040, 6581 and the layouts of SDP, not from this library."""

import dataclasses
import struct

# --- SDP: message ids, and where the fields of the base header are ---

HELLO, HELLO_ACK, DISCONN, ABORT, SEND_SM = 0x00, 0x01, 0x02, 0x03, 0x04
WRITE_COMPLETE, READ_COMPLETE, MODE_CHANGE = 0x05, 0x06, 0x07
SRC_CANCEL, SINK_CANCEL, SINK_CANCEL_ACK = 0x08, 0x09, 0x0A
CHANGE_BUFFER, CHANGE_BUFFER_ACK, SUSPEND, SUSPEND_ACK = 0x0B, 0x0C, 0x0D, 0x0E
SINK_AVAIL, SRC_AVAIL, DATA = 0xFD, 0xFE, 0xFF

URGENT_HERE, URGENT_COMES, WANTS_PIPELINED = 0x01, 0x02, 0x04
TO_BUFFERED, TO_COMBINED, TO_PIPELINED, SINK_TO_COMBINED = 0x00, 0x10, 0x20, 0x90  # ModeChange
INVALIDATES, KNOWS_TOKEN, MAY_BE_MOVED = 0x1, 0x4, 0x8  # capabilities

HEADER_BYTES = 16
FIXED_BYTES = {
    **dict.fromkeys((WRITE_COMPLETE, READ_COMPLETE, MODE_CHANGE, CHANGE_BUFFER, CHANGE_BUFFER_ACK), 20),
    **{SUSPEND: 24, SRC_AVAIL: 32, SINK_AVAIL: 36},
}


@dataclasses.dataclass
class Message:
    mid: int
    body: bytes = b""  # all behind the base header
    flags: int = 0
    bufs: int = 64
    sequence: int = 0
    ack: int = 0
    length: int | None = None  # what the header says, where it is not the truth

    def encode(self):
        length = HEADER_BYTES + len(self.body) if self.length is None else self.length
        head = struct.pack(">BBHIII", self.mid, self.flags, self.bufs, length, self.sequence, self.ack)
        return head + self.body

    @staticmethod
    def decode(data):
        mid, flags, bufs, length, sequence, ack = struct.unpack_from(">BBHIII", data)
        assert length == len(data), (length, data.hex())
        return Message(mid, data[HEADER_BYTES:], flags, bufs, sequence, ack)

    @property
    def payload(self):
        return self.body[FIXED_BYTES.get(self.mid, HEADER_BYTES) - HEADER_BYTES :]

    def number(self):
        """The one field of a completion or of a change of buffers."""
        return struct.unpack_from(">I", self.body)[0]

    def advert(self):
        """Length, key and address of SrcAvail or SinkAvail."""
        return struct.unpack_from(">IIQ", self.body)


def u32(value):
    return struct.pack(">I", value & 0xFFFFFFFF)


def u64(value):
    return struct.pack(">Q", value & 0xFFFFFFFFFFFFFFFF)


def mode(byte):
    return bytes((byte, 0, 0, 0))


def src_avail(length, key, address, payload=b""):
    return u32(length) + u32(key) + u64(address) + payload


def sink_avail(length, key, address, non_discards, payload=b""):
    return src_avail(length, key, address) + u32(non_discards) + payload


def suspend_to(port):
    return u64(0x10000 | port)


def put(data, at, value, size):
    """`data` with a number in place of what is there."""
    return data[:at] + (value & ((1 << (8 * size)) - 1)).to_bytes(size, "big") + data[at + size :]


def hello(port, *, adverts=16, buffer_bytes=32784, bufs=64, capabilities=0, token=bytes(16)):
    ends = bytes(12) + bytes((127, 0, 0, 1)) + bytes(12) + bytes((127, 0, 0, 1))
    head = struct.pack(">BBBBIIHH", 0x22, 0x40 | capabilities, 0, adverts, buffer_bytes, buffer_bytes, port, 0)
    return Message(HELLO, head + ends + bytes(4) + token + bytes(8), bufs=bufs).encode()


def hello_ack(*, adverts=16, buffer_bytes=32784, bufs=64, capabilities=0, token=bytes(16)):
    head = struct.pack(">BBBBI", 0x22, capabilities, 0, adverts, buffer_bytes)
    return Message(HELLO_ACK, head + token + bytes(156), bufs=bufs).encode()


def token_of(greeting):
    """The return token of a Hello (92 bytes) or a HelloAck (196)."""
    return greeting[68:84] if len(greeting) == 92 else greeting[24:40]


# --- MPA (RFC 5044, RFC 6581) ---

REQUEST_KEY, REPLY_KEY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
WITH_CRC, REJECTED, ENHANCED = 0x40, 0x20, 0x10
STARTUP_BYTES = 20
# IRD and ORD of a model where the connection is there when the initiator's empty RDMA Write has come, and not before.
UNTIL_READY = (0x8010, 0x8010)


def startup(key, private_data, *, flags=ENHANCED, revision=2, length=None, depths=(16, 16)):
    words = struct.pack(">HH", *depths) if flags & ENHANCED else b""
    length = len(words) + len(private_data) if length is None else length
    return key + struct.pack(">BBH", flags, revision, length) + words + private_data


def _crc32c_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


_CRC32C = tuple(_crc32c_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def frame(ulpdu, *, crc=None):
    """An FPDU. `crc`: None for zero, True for the right one."""
    data = struct.pack(">H", len(ulpdu)) + ulpdu
    data += bytes(-len(data) % 4)
    return data + struct.pack("<I", crc32c(data) if crc else 0)


def frame_bytes(ulpdu_bytes):
    """How long a frame is with its length, padding and CRC."""
    return 2 + ulpdu_bytes + -(2 + ulpdu_bytes) % 4 + 4


# --- DDP (RFC 5041) and RDMAP (RFC 5040) ---

OP_WRITE, OP_READ_REQUEST, OP_READ_RESPONSE, OP_SEND, OP_SEND_INVALIDATE = 0, 1, 2, 3, 4
OP_SEND_SOLICITED, OP_SEND_SOLICITED_INVALIDATE, OP_TERMINATE = 5, 6, 7
QUEUE_SEND, QUEUE_READ, QUEUE_TERMINATE = 0, 1, 2


def untagged(opcode, queue, number, payload, *, offset=0, last=True, word=0):
    """`number`: of the message in its queue, from 1. `word`: the key that a Send invalidates."""
    control = 0x41 if last else 0x01
    return struct.pack(">BBIIII", control, 0x40 | opcode, word, queue, number, offset) + payload


def tagged(opcode, key, offset, payload, *, last=True):
    return struct.pack(">BBIQ", 0xC1 if last else 0x81, 0x40 | opcode, key, offset & (2**64 - 1)) + payload


def read_request(number, sink_key, sink_offset, length, source_key, source_offset):
    payload = struct.pack(">IQIIQ", sink_key, sink_offset, length, source_key, source_offset & (2**64 - 1))
    return untagged(OP_READ_REQUEST, QUEUE_READ, number, payload)


@dataclasses.dataclass
class Segment:
    opcode: int
    last: bool
    payload: bytes
    tag: int = 0  # of a tagged segment; untagged: the word that is RDMAP's
    offset: int = 0
    queue: int | None = None  # None: tagged
    number: int = 0

    @staticmethod
    def decode(ulpdu):
        control, operation = ulpdu[0], ulpdu[1]
        last, opcode = bool(control & 0x40), operation & 0x0F
        if control & 0x80:
            tag, offset = struct.unpack_from(">IQ", ulpdu, 2)
            return Segment(opcode, last, ulpdu[14:], tag, offset)
        word, queue, number, offset = struct.unpack_from(">IIII", ulpdu, 2)
        return Segment(opcode, last, ulpdu[18:], word, offset, queue, number)
