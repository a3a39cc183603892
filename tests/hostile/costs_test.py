#!/usr/bin/env python3
"""What hostile peers make the others of a Context pay, and what they get to see."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import wire
from peer import Peer
from suite import HostileTest

EMPTY_FRAME = wire.frame(b"")
EMPTY_WRITE = wire.frame(wire.tagged(wire.OP_WRITE, 0, 0, b""))
LIMIT_IN_A_ROW = 1024
STREAM_CATASTROPHE = 0x0207  # RDMAP, remote operation: catastrophic error, localized to the stream


class FloodTest(HostileTest):
    def flood(self, frames):
        """A peer that sends them until it is cut off."""

        def attack(goes_on):
            with Peer(self.port) as peer:
                peer.shake()
                data = frames(peer) * 4096
                for _ in range(64):
                    if not peer.ended:
                        peer.write(data)
                peer.wait_for_end()
                cut.append(peer.terminate)

        cut = []
        self.start()
        peer = self.peer()
        peer.write(frames(peer) * (LIMIT_IN_A_ROW + 1))
        self.assert_breach(peer, "carried nothing")
        self.assertEqual(STREAM_CATASTROPHE, peer.terminate)
        self.besiege(attack, attackers=3)
        self.assertGreater(len(cut), 3)
        # Bytes that are on their way when the stream is ended may undo the Terminate before them.
        self.assertLessEqual(set(cut), {STREAM_CATASTROPHE, None})

    def test_a_flood_of_empty_frames_is_cut_with_terminate_and_the_others_are_served(self):
        self.flood(lambda peer: EMPTY_FRAME)

    def test_a_flood_of_empty_writes_is_cut_with_terminate_and_the_others_are_served(self):
        self.flood(lambda peer: EMPTY_WRITE)

    def test_a_flood_of_empty_segments_is_cut_with_terminate_and_the_others_are_served(self):
        self.flood(lambda peer: wire.frame(wire.untagged(wire.OP_SEND, 0, peer.send_number, b"", last=False)))

    def test_a_flood_that_keeps_within_the_limit_does_not_starve_the_others(self):
        def attack(goes_on):
            with Peer(self.port) as peer:
                peer.shake()
                while goes_on():
                    peer.write(EMPTY_FRAME * 1000)
                    if peer.credits() < 2:
                        peer.wait(lambda: peer.credits() >= 2)
                    peer.say(wire.DATA)
                peer.reset()

        self.start()
        self.besiege(attack, attackers=2)

    def test_peers_that_send_as_fast_as_they_can_do_not_starve_the_others(self):
        def attack(goes_on):
            with Peer(self.port) as peer:
                peer.shake()
                while goes_on():
                    peer.echo(b"x" * 32768)
                peer.reset()

        self.start()
        self.besiege(attack, attackers=2)

    def test_peers_that_take_nothing_do_not_starve_the_others(self):
        def attack():
            peer = self.peer()
            for _ in range(8):
                peer.say(wire.DATA, b"x" * 8192, bufs=0)
            taken.append(peer)

        taken = []
        self.start()
        self.advance(3, attack, pause=0.05)
        for peer in taken:
            peer.reset()


class BelievedTest(HostileTest):
    def shown(self, **greeting):
        """A peer that the victim shows a receive to: length, key and address."""
        peer = self.peer(**greeting)
        peer.say(wire.MODE_CHANGE, wire.mode(wire.TO_PIPELINED))
        return peer, peer.take(wire.SINK_AVAIL).advert()

    def test_a_write_that_is_told_and_was_not_made_returns_no_old_bytes(self):
        self.start()  # the healthy client's bytes lie in the buffers
        for length in (1, 4096, 65536, 256 * 1024):
            for invalidates in (False, True):
                peer, (_, key, _) = self.shown(capabilities=wire.INVALIDATES)
                header = {"word": key} if invalidates else {}
                peer.send(peer.message(wire.WRITE_COMPLETE, wire.u32(length)).encode(), **header)
                self.assert_breach(peer, "RdmaWrCompl", what="%d bytes, %s" % (length, header))
                self.assertEqual([], peer.messages, "something came back")

    def test_a_write_that_is_told_longer_than_it_was_returns_no_old_bytes(self):
        self.start()
        peer, (_, key, address) = self.shown()
        peer.rdma_write(key, address, b"n" * 1000)
        peer.say(wire.WRITE_COMPLETE, wire.u32(1001))
        self.assert_breach(peer, "RdmaWrCompl")
        self.assertEqual([], peer.messages, "something came back")

    def test_a_write_with_a_gap_in_it_returns_no_old_bytes(self):
        self.start()
        peer, (_, key, address) = self.shown()
        peer.rdma_write(key, address, b"n" * 1000)
        peer.rdma_write(key, address + 2000, b"n" * 1000)
        peer.say(wire.WRITE_COMPLETE, wire.u32(3000))
        self.assert_breach(peer, "RdmaWrCompl")
        self.assertEqual([], peer.messages, "something came back")

    def test_a_write_that_was_made_comes_back_and_no_byte_more(self):
        self.start()
        peer, (_, key, address) = self.shown()
        data = bytes(range(256)) * 8
        peer.rdma_write(key, address, data)
        peer.say(wire.WRITE_COMPLETE, wire.u32(len(data)))
        self.assertEqual(data, peer.collect(len(data)))
        peer.reset()

    def test_bytes_written_behind_the_report_are_refused(self):
        self.start()
        peer, (_, key, address) = self.shown()
        peer.rdma_write(key, address, b"n" * 1000)
        peer.say(wire.WRITE_COMPLETE, wire.u32(1000))
        self.assertEqual(b"n" * 1000, peer.collect(1000))
        peer.rdma_write(key, address, b"changed!")
        self.assert_breach(peer, "not shown", kind="PERMISSION_DENIED")


class NeverAnsweredTest(HostileTest):
    """The victim puts a deadline of a second on what it does for a peer whose first byte is a D."""

    def late(self, peer):
        port = peer.port()
        peer.wait_for_end()
        self.assertRegex(self.why(port), "deadline passed|DEADLINE_EXCEEDED")
        peer.close()

    def echoed(self):
        peer = self.peer()
        self.assertEqual(b"D", peer.echo(b"D"))
        return peer

    def test_an_advert_that_is_never_served_ends_at_the_deadline(self):
        self.start()
        peers = []
        for length in (100_000, 256 * 1024, 1 << 20):  # less than the victim's receive, as much, and more
            peer = self.echoed()
            peer.say(wire.SRC_AVAIL, wire.src_avail(length, peer.KEY, peer.VA, b"i"))
            peers.append(peer)
        for peer in peers:
            peer.wait(lambda peer=peer: peer.requests)  # it reads, and is not answered
        for peer in peers:
            self.late(peer)

    def test_an_advert_that_is_served_in_part_ends_at_the_deadline(self):
        self.start()
        peer = self.echoed()
        peer.say(wire.SRC_AVAIL, wire.src_avail(100_000, peer.KEY, peer.VA, b"i"))
        peer.wait(lambda: peer.requests)
        sink, at, _, _, _ = peer.requests.pop()
        peer.write(wire.frame(wire.tagged(wire.OP_READ_RESPONSE, sink, at, b"n" * 1000, last=False)))
        self.late(peer)

    def test_an_advert_that_is_never_read_ends_at_the_deadline(self):
        self.start()
        peer = self.peer()
        data = b"D" + bytes(99_999)
        peer.say(wire.SRC_AVAIL, wire.src_avail(len(data), peer.KEY, peer.VA, b"D"))
        peer.wait(lambda: peer.requests)
        peer.serve(data)
        peer.take(wire.SRC_AVAIL)  # what it sends back
        self.late(peer)

    def test_a_receive_that_is_shown_and_never_written_ends_at_the_deadline(self):
        self.start()
        peer = self.peer()
        peer.say(wire.MODE_CHANGE, wire.mode(wire.TO_PIPELINED))
        _, key, address = peer.take(wire.SINK_AVAIL).advert()
        peer.rdma_write(key, address, b"D")
        peer.say(wire.WRITE_COMPLETE, wire.u32(1))
        peer.take(wire.SINK_AVAIL)
        self.late(peer)


if __name__ == "__main__":
    unittest.main(verbosity=2)
