#!/usr/bin/env python3
"""Bytes that are wrong, at every layer: each ends its own connection, with the reason, and nobody else's."""

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import wire
from peer import Ended, Peer
from suite import HostileTest, seed


class CutAndFlippedTest(HostileTest):
    """A valid conversation, said in one go, that is cut or has a bit changed."""

    def conversation(self):
        frames, peer = [], Peer(self.port)
        peer.write = frames.append
        with peer:
            peer.write(peer.request())
            peer.say(wire.DATA)
            peer.say(wire.DATA, b"hello")
            peer.say(wire.SRC_AVAIL, wire.src_avail(100_000, peer.KEY, peer.VA, b"i"))
            peer.say(wire.SRC_CANCEL)
            peer.say(wire.MODE_CHANGE, wire.mode(wire.TO_PIPELINED))
            peer.say(wire.DATA, b"!", flags=wire.URGENT_HERE | wire.URGENT_COMES)
            peer.say(wire.DISCONN)
        return b"".join(frames)

    def tell(self, data, end):
        with Peer(self.port) as peer:
            peer.write(data)
            if len(data) > 116 and len(data) % 3 == 0:  # some see the answer first, most do not wait for it
                peer._read_some()
            (peer.reset if end == "reset" else peer.close)()

    def test_a_conversation_cut_at_any_byte_leaves_nothing_behind(self):
        self.start()
        whole = self.conversation()
        self.assertGreater(len(whole), 350)
        for end in ("close", "reset"):
            for size in range(len(whole) + 1):
                self.tell(whole[:size], end)
        self.advance()

    def test_a_conversation_with_a_bit_changed_costs_nobody_else_anything(self):
        self.start()
        chance, whole = random.Random(seed()), self.conversation()

        def attack():
            for _ in range(150):
                bit = chance.randrange(8 * len(whole))
                changed = wire.put(whole, bit // 8, whole[bit // 8] ^ 1 << bit % 8, 1)
                self.tell(changed, chance.choice(("close", "reset")))

        self.level(attack)


class StartupTest(HostileTest):
    def assert_turned_away(self, request, what):
        with Peer(self.port) as peer:
            peer.write(request)
            with self.assertRaises(Ended, msg=what):
                peer.read_reply()

    def test_a_request_of_mpa_that_is_wrong_is_turned_away(self):
        self.start()
        hello = wire.hello(4000)
        good = wire.startup(wire.REQUEST_KEY, hello)
        for at, value, size in ((0, 0x6D, 1), (7, 0, 1), (16, 0x90, 1), (16, 0xB0, 1), (17, 0, 1), (17, 3, 1), (18, 513, 2)):
            self.assert_turned_away(wire.put(good, at, value, size) + bytes(600), "byte %d = %d" % (at, value))
        self.assert_turned_away(wire.startup(wire.REPLY_KEY, hello), "a reply")
        self.assert_turned_away(wire.startup(wire.REQUEST_KEY, hello[:31]), "short of a compact Hello")
        self.assert_turned_away(wire.startup(wire.REQUEST_KEY, b""), "without Hello")
        self.assert_turned_away(wire.startup(wire.REQUEST_KEY, b"", length=2) + b"xx", "without IRD and ORD")
        self.assert_turned_away(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "another protocol")

    def test_a_hello_that_is_absurd_is_turned_away(self):
        self.start()
        good = wire.hello(4000)
        lies = (
            ((0, 1, 1), (0, wire.DATA, 1))  # another message
            + ((4, 0, 4), (4, 91, 4), (4, 93, 4), (4, 0xFFFFFFFF, 4))  # Len
            + ((8, 1, 4), (12, 1, 4))  # MSeq, MSeqAck
            + ((16, 0x00, 1), (16, 0x32, 1), (16, 0xFF, 1))  # MajV
            + ((17, 0x00, 1), (17, 0x50, 1))  # IPV
            + ((19, 0, 1), (24, 0, 4), (24, 36, 4))  # MaxAdverts, LocalRcvSz
        )
        for at, value, size in lies:
            request = wire.startup(wire.REQUEST_KEY, wire.put(good, at, value, size))
            self.assert_turned_away(request, "byte %d = %d" % (at, value))

    def test_a_hello_at_its_limits_costs_no_more_than_another(self):
        def attack():
            for bufs, size, adverts in ((65535, 1 << 31, 255), (0, 37, 1), (3, 37, 255), (65535, 0xFFFFFFFF, 1)):
                with Peer(self.port, bufs=bufs, buffer_bytes=size, adverts=adverts) as peer:
                    try:
                        peer.shake()
                        peer.say(wire.DATA, b"x" * 8000)
                        if bufs >= 3:
                            peer.collect(1)
                    except Ended:
                        pass
                    peer.reset()

        self.start()
        self.level(lambda: [attack() for _ in range(5)], times=4)

    def test_a_peer_with_checksums_is_served_until_one_is_wrong(self):
        self.start()
        peer = self.peer(crc=True)
        self.assertEqual(b"checked", peer.echo(b"checked"))
        ulpdu = wire.untagged(wire.OP_SEND, 0, peer.send_number, peer.message(wire.DATA, b"wrong").encode())
        frame = bytearray(wire.frame(ulpdu, crc=True))
        frame[30] ^= 1
        peer.write(bytes(frame))
        self.assert_breach(peer, "CRC")
        self.assertEqual([], peer.messages)


class FrameTest(HostileTest):
    def refused(self, name, terminate, ulpdu):
        """The frame behind the first one is answered with this Terminate."""
        with Peer(self.port) as peer:
            peer.shake()
            peer.write(wire.frame(ulpdu))
            peer.wait_for_end()
            self.assertEqual("%04x" % terminate, "%04x" % (peer.terminate or 0xFFFF), name)

    def test_frames_that_break_mpa_ddp_or_rdmap_are_answered_with_terminate(self):
        self.start()
        message = wire.Message(wire.DATA, b"12345", sequence=2).encode()
        send = wire.untagged(wire.OP_SEND, 0, 2, message)
        cases = {
            "shorter than a header": (0x2003, b"\x41"),
            "shorter than its own header": (0x2003, send[:17]),
            "DDP version 2": (0x1206, wire.put(send, 0, 0x42, 1)),
            "DDP version 0, tagged": (0x1104, wire.put(wire.tagged(wire.OP_WRITE, 1, 0, b"x"), 0, 0xC0, 1)),
            "RDMAP version 2": (0x0205, wire.put(send, 1, 0x83, 1)),
            "an opcode that is reserved": (0x0206, wire.put(send, 1, 0x48, 1)),
            "a Send that is tagged": (0x0206, wire.tagged(wire.OP_SEND, 1, 0, b"x")),
            "a Write that is untagged": (0x0206, wire.untagged(wire.OP_WRITE, 0, 2, b"x")),
            "a Send in the queue of READs": (0x1201, wire.untagged(wire.OP_SEND, 1, 1, message)),
            "a queue that does not exist": (0x1201, wire.untagged(wire.OP_SEND, 0xFFFFFFFF, 2, message)),
            "a number left out": (0x1203, wire.untagged(wire.OP_SEND, 0, 3, message)),
            "a number said twice": (0x1203, wire.untagged(wire.OP_SEND, 0, 1, message)),
            "an offset where none was begun": (0x1204, wire.untagged(wire.OP_SEND, 0, 2, message, offset=1)),
            "longer than the receive": (0x1205, wire.untagged(wire.OP_SEND, 0, 2, bytes(17000))),
            "a READ of 27 bytes": (0x02FF, wire.read_request(1, 1, 0, 8, 1, 0)[:-1]),
            "a READ of 29 bytes": (0x1205, wire.read_request(1, 1, 0, 8, 1, 0) + b"x"),
            "a READ out of order": (0x1203, wire.read_request(2, 1, 0, 8, 1, 0)),
            "an answer to no READ": (0x0206, wire.tagged(wire.OP_READ_RESPONSE, 1, 0, b"x")),
            "a Send that invalidates what it was not shown": (
                0x0100,
                wire.untagged(wire.OP_SEND_INVALIDATE, 0, 2, message, word=77),
            ),
        }
        for name, (terminate, ulpdu) in cases.items():
            self.refused(name, terminate, ulpdu)

    def test_messages_beyond_the_credits_end_the_connection(self):
        self.start()
        peer = self.peer(bufs=3)  # so it can soon answer nothing, and its buffers fill
        for _ in range(100):  # each too large to be copied: the echo of the first waits, and the rest is not received
            peer.say(wire.DATA, b"x" * 8192, bufs=0)
        self.assert_breach(peer)
        self.assertEqual(0x1202, peer.terminate)  # DDP: no buffer

    def test_keys_that_were_not_given_open_nothing(self):
        self.start()
        chance = random.Random(seed())
        other = self.peer()
        other.say(wire.MODE_CHANGE, wire.mode(wire.TO_PIPELINED))
        _, key_of_other, at_other = other.take(wire.SINK_AVAIL).advert()
        near = [0, 1, 0xFFFFFFFF, key_of_other, key_of_other + 1, key_of_other ^ 0x100]
        for key in near + [chance.randrange(1 << 32) for _ in range(20)]:
            for at in (0, at_other):
                with Peer(self.port) as peer:
                    peer.shake()
                    with self.assertRaises(Ended):
                        peer.rdma_read(64, key & 0xFFFFFFFF, at)
                    self.assertEqual(b"", peer.responses)
                    self.assertIn(peer.terminate, (0x0100, 0x0103))
                with Peer(self.port) as peer:
                    peer.shake()
                    peer.rdma_write(key & 0xFFFFFFFF, at, b"overwritten")
                    peer.wait_for_end()
                    self.assertIn(peer.terminate, (0x1100, 0x1102))
        # The one whose key it was has not noticed.
        other.rdma_write(key_of_other, at_other, b"its own")
        other.say(wire.WRITE_COMPLETE, wire.u32(7))
        self.assertEqual(b"its own", other.collect(7))
        other.reset()

    def offered(self):
        """A peer that the victim shows what it sends back: 100,000 bytes."""
        peer = self.peer()
        data = bytes(range(250)) * 400
        peer.say(wire.SRC_AVAIL, wire.src_avail(len(data), peer.KEY, peer.VA, data[:1]))
        peer.wait(lambda: peer.requests)
        peer.serve(data)
        return peer, data, peer.take(wire.SRC_AVAIL).advert()

    def test_what_is_shown_can_be_read_and_no_byte_beside_it(self):
        self.start()
        for before, behind in ((0, 1), (1, 0), (1 << 40, 0), (-(1 << 20), 0)):
            peer, data, (length, key, at) = self.offered()
            self.assertEqual(data[:10], peer.rdma_read(10, key, at))
            with self.assertRaises(Ended):
                peer.rdma_read(length + behind, key, at - before)
            self.assertEqual(b"", peer.responses)
            self.assert_breach(peer, "not shown", kind="PERMISSION_DENIED")

    def test_what_is_shown_for_reading_cannot_be_written(self):
        self.start()
        peer, _, (_, key, at) = self.offered()
        peer.rdma_write(key, at, b"overwritten")
        self.assert_breach(peer, "not shown", kind="PERMISSION_DENIED")

    def test_a_key_is_dead_when_its_advert_has_ended(self):
        self.start()
        peer, data, (length, key, at) = self.offered()
        self.assertEqual(data, peer.rdma_read(length, key, at))
        peer.say(wire.READ_COMPLETE, wire.u32(length - 1))
        self.assertEqual(b"next", peer.echo(b"next"))  # the send has ended
        with self.assertRaises(Ended):
            peer.rdma_read(64, key, at)
        self.assertEqual(b"", peer.responses)
        self.assert_breach(peer, "not shown", kind="PERMISSION_DENIED")

    def test_reads_by_the_hundred_that_nobody_takes_keep_nobody_else_waiting(self):
        self.start()
        peer, _, (length, key, at) = self.offered()
        for _ in range(16):
            peer.ask_read(length, key, at)
        self.advance(20)
        for _ in range(300):
            peer.ask_read(length, key, at)
        self.advance(20)
        peer.reset()


if __name__ == "__main__":
    unittest.main(verbosity=2)
