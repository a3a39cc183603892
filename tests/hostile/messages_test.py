#!/usr/bin/env python3
"""Messages of SDP that are wrong, or right at the wrong time, and mutations of them by the thousand.

ESDP_MUTATIONS says how many conversations are mutated, ESDP_SEED by which chance.
"""

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import wire
from peer import Ended, Peer
from suite import HostileTest, seed

MUTATIONS = int(os.environ.get("ESDP_MUTATIONS", 1500))  # conversations, of about four messages each
KEY, VA = Peer.KEY, Peer.VA


class MessageTest(HostileTest):
    """Each case is a list of what a peer says after its first message; the last of it breaks a rule."""

    def assert_breaches(self, cases, connect=None):
        self.start()
        for name, said in cases.items():
            peer = (connect or self.peer)()
            with peer.together():
                for mid, body, fields in said:
                    peer.say(mid, body, **fields)
            self.assert_breach(peer, what=name)

    def test_a_header_that_lies_ends_the_connection(self):
        self.assert_breaches(
            {
                **{"id %#x" % mid: [(mid, b"", {})] for mid in (0x00, 0x01, 0x0F, 0x10, 0x3F, 0x40, 0x7F, 0x80, 0xFC)},
                "shorter than it is": [(wire.DATA, b"12345", {"length": 20})],
                "longer than it is": [(wire.DATA, b"12345", {"length": 22})],
                "no length": [(wire.DATA, b"", {"length": 0})],
                "all the length there is": [(wire.DATA, b"", {"length": 0xFFFFFFFF})],
                "a number left out": [(wire.DATA, b"", {"sequence": 3})],
                "a number said twice": [(wire.DATA, b"", {"sequence": 1})],
                "a number of before": [(wire.DATA, b"", {"sequence": 0xFFFFFFFF})],
                "acknowledges the future": [(wire.DATA, b"", {"ack": 1000})],
                "more behind DisConn": [(wire.DISCONN, b"x", {})],
                "more behind SendSm": [(wire.SEND_SM, b"x", {})],
                "half of an RdmaWrCompl": [(wire.WRITE_COMPLETE, b"xx", {})],
                "half of a SrcAvail": [(wire.SRC_AVAIL, bytes(8), {})],
                "half of a SinkAvail": [(wire.SINK_AVAIL, bytes(16), {})],
                "urgent and empty": [(wire.DATA, b"", {"flags": wire.URGENT_HERE})],
                "urgent SrcAvail": [(wire.SRC_AVAIL, wire.src_avail(9, KEY, VA, b"x"), {"flags": wire.URGENT_HERE})],
                "urgent twice": [(wire.DATA, b"", {"flags": wire.URGENT_COMES})] * 2,
            }
        )

    def test_what_comes_in_the_wrong_state_ends_the_connection(self):
        pipelined = (wire.MODE_CHANGE, wire.mode(wire.TO_PIPELINED), {})
        advert = (wire.SRC_AVAIL, wire.src_avail(1 << 20, KEY, VA, b"x"), {})
        self.assert_breaches(
            {
                "data behind an advert": [advert, (wire.DATA, b"x", {})],
                "a second advert in Combined": [advert, advert],
                "a READ that was not asked for": [(wire.READ_COMPLETE, wire.u32(1), {})],
                "a WRITE outside Pipelined": [(wire.WRITE_COMPLETE, wire.u32(1), {})],
                "SinkAvail outside Pipelined": [(wire.SINK_AVAIL, wire.sink_avail(1 << 20, KEY, VA, 0), {})],
                "SuspComm": [(wire.SUSPEND, wire.suspend_to(1), {})],
                "user bytes in a Pipelined advert": [pipelined, advert],
                "to Buffered with an advert": [advert, (wire.MODE_CHANGE, wire.mode(wire.TO_BUFFERED), {})],
                "a mode that is reserved": [(wire.MODE_CHANGE, wire.mode(0x30), {})],
                "a mode of the other's": [(wire.MODE_CHANGE, wire.mode(0xA0), {})],
                "a buffer smaller than a message": [(wire.CHANGE_BUFFER, wire.u32(36), {})],
            }
        )

    def test_what_comes_behind_disconn_ends_the_connection(self):
        # The victim still has something to send, or its own DisConn might end the connection in order before it looks.
        self.assert_breaches(
            {
                "DisConn": [(wire.DISCONN, b"", {}), (wire.DISCONN, b"", {})],
                "data": [(wire.DISCONN, b"", {}), (wire.DATA, b"x", {})],
                "an advert": [(wire.DISCONN, b"", {}), (wire.SRC_AVAIL, wire.src_avail(1 << 20, KEY, VA, b"x"), {})],
            },
            connect=self.busy,
        )

    def test_abort_without_disconn_is_an_end_like_a_reset(self):
        self.start()
        peer = self.peer()
        peer.say(wire.ABORT)
        self.assert_breach(peer, kind="ABORTED")

    def test_an_advert_that_lies_ends_the_connection(self):
        self.assert_breaches(
            {
                "of no bytes": [(wire.SRC_AVAIL, wire.src_avail(0, KEY, VA), {})],
                "of more than 2^31": [(wire.SRC_AVAIL, wire.src_avail(0x80000001, KEY, VA, b"x"), {})],
                "of all bytes": [(wire.SRC_AVAIL, wire.src_avail(0xFFFFFFFF, KEY, VA, b"x"), {})],
                "shorter than what came with it": [(wire.SRC_AVAIL, wire.src_avail(3, KEY, VA, b"1234"), {})],
            }
        )

    def busy(self):
        """A peer that is shown what the victim sends back and does not read it, so that nothing is received meanwhile."""
        peer = self.peer()
        data = bytes(100_000)
        peer.say(wire.SRC_AVAIL, wire.src_avail(len(data), KEY, VA, b"\0"))
        peer.wait(lambda: peer.requests)
        peer.serve(data)
        peer.take(wire.SRC_AVAIL)
        return peer

    def test_more_adverts_than_were_allowed_end_the_connection(self):
        self.start()
        peer = self.busy()
        peer.say(wire.MODE_CHANGE, wire.mode(wire.TO_PIPELINED))
        for _ in range(256):  # of 255
            peer.wait(lambda: peer.credits() >= 3)
            peer.say(wire.SRC_AVAIL, wire.src_avail(4096, KEY, VA))
        self.assert_breach(peer)

    def test_answers_to_what_was_never_asked_change_nothing(self):
        self.start()
        peer = self.peer()
        for mid in (wire.SEND_SM, wire.SINK_CANCEL_ACK, wire.SINK_CANCEL, wire.SRC_CANCEL, wire.SUSPEND_ACK) * 3:
            peer.wait(lambda: peer.credits() >= 3)
            peer.say(mid)
        peer.say(wire.CHANGE_BUFFER_ACK, wire.u32(1 << 20))
        self.assertEqual(b"goes on", peer.echo(b"goes on"))
        peer.reset()

    def test_a_read_that_was_never_made_ends_no_send(self):
        self.start()
        for told in (100_000, 99_999 + 2, 0xFFFFFFFF):
            peer = self.busy()
            peer.say(wire.READ_COMPLETE, wire.u32(told))  # the inline byte does not count
            self.assert_breach(peer)

    def test_a_flood_of_buffer_requests_takes_no_more_than_the_option_allows(self):
        def attack():
            peers = [self.peer() for _ in range(20)]
            for peer in peers:
                peer.say(wire.CHANGE_BUFFER, wire.u32(1 << 30))
                for _ in range(20):  # the answer comes when the old ones are used up
                    self.assertEqual(b"x", peer.echo(b"x"))
                (answer,) = [message for message in peer.passed if message.mid == wire.CHANGE_BUFFER_ACK]
                self.assertLessEqual(answer.number(), 64 * 1024 + 16)
                peer.reset()

        self.start()
        self.level(attack)


class MutationTest(HostileTest):
    """Valid messages, in any order, a few of them with other values in their fields or other bytes somewhere."""

    def a_message(self, chance):
        number = chance.choice((0, 1, 36, 37, 4096, 65535, 65536, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, chance.randrange(1 << 32)))
        payload = bytes(chance.choice((0, 1, 1, 100, 5000)))
        place = (chance.choice((KEY, number)), chance.choice((VA, 0, (1 << 64) - 1)))
        return chance.choice(
            (
                (wire.DATA, payload),
                (wire.DATA, b"x"),
                (wire.SRC_AVAIL, wire.src_avail(chance.choice((number, 100_000)), *place, b"i")),
                (wire.SRC_AVAIL, wire.src_avail(chance.choice((number, 100_000)), *place)),
                (wire.SINK_AVAIL, wire.sink_avail(chance.choice((number, 100_000)), *place, chance.choice((0, 1, number)), payload)),
                (wire.MODE_CHANGE, wire.mode(chance.choice((0x00, 0x10, 0x20, 0x20, 0x20, 0x90, 0x30, number & 0xFF)))),
                (chance.choice((wire.WRITE_COMPLETE, wire.READ_COMPLETE)), wire.u32(number)),
                (chance.choice((wire.CHANGE_BUFFER, wire.CHANGE_BUFFER_ACK)), wire.u32(number)),
                (chance.choice((wire.SRC_CANCEL, wire.SINK_CANCEL, wire.SINK_CANCEL_ACK, wire.SEND_SM)), b""),
                (chance.choice((wire.SUSPEND, wire.SUSPEND_ACK)), chance.choice((b"", wire.suspend_to(self.port)))),
                (chance.choice((wire.DISCONN, wire.ABORT, wire.HELLO, wire.HELLO_ACK)), b""),
            )
        )

    def mutated(self, chance, data):
        for _ in range(chance.choice((0, 0, 0, 1, 1, 2, 8))):
            at = chance.randrange(len(data))
            data = wire.put(data, at, chance.choice((0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1 << chance.randrange(8))), 1)
        return data if chance.random() < 0.95 else data[: chance.randrange(len(data))]

    def converse(self, chance):
        peer = Peer(self.port, capabilities=chance.choice((0, 1, 4, 0xC, 0xD)), adverts=chance.choice((1, 2, 16, 255)))
        with peer:
            if chance.random() < 0.05:
                peer.write(self.mutated(chance, peer.request()))
            else:
                peer.shake()
            frames = b""
            for _ in range(chance.randrange(1, 8)):
                mid, body = self.a_message(chance)
                fields = {"flags": chance.choice((0, 0, 0, 1, 2, 3, 4, 0xFF)), "bufs": chance.choice((64, 64, 3, 0, 65535))}
                message = self.mutated(chance, peer.message(mid, body, **fields).encode())
                frame = wire.frame(wire.untagged(wire.OP_SEND, 0, peer.send_number, message))
                peer.send_number += 1
                frames += self.mutated(chance, frame) if chance.random() < 0.1 else frame
                if chance.random() < 0.1:
                    frames += wire.frame(wire.read_request(1, KEY, VA, chance.randrange(1 << 17), KEY, VA))
            peer.write(frames)
            if chance.random() < 0.3:  # it hears what is said to that, as far as it is at once
                peer.stream.settimeout(0.02)
                try:
                    peer.wait_for_end()
                except TimeoutError:
                    pass
            peer.reset() if chance.random() < 0.5 else peer.close()

    def mutate(self, *options):
        self.start(*options)
        number = seed()
        turns = iter(range(1, 4))

        def attack():
            chance = random.Random(number * 10 + next(turns))
            for _ in range(MUTATIONS // 6):
                try:
                    self.converse(chance)
                except Ended:
                    pass

        self.level(attack)

    def test_mutations_end_their_own_connections_and_nothing_else(self):
        self.mutate()

    def test_mutations_end_nothing_else_where_connections_may_be_moved(self):
        self.mutate("--peer-moves", "unguarded")


if __name__ == "__main__":
    unittest.main(verbosity=2)
