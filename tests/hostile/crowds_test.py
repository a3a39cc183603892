#!/usr/bin/env python3
"""Strangers by the dozen and the thousand, who begin a connection and do not go on with it: they keep nobody out."""

import contextlib
import os
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import wire
from peer import Ended, Peer
from suite import HostileTest

SECOND = 1.2  # in which nobody who has begun is sent away, and a little more


NOTHING, HALF, ALL = 0, 50, 1000  # bytes of a request, about, that a stranger says
# More of each than there is room for: those that have said all of their request are counted apart.
MORE = {ALL: 40, NOTHING: 300, HALF: 300}
FEW = ("--half-open-max", 16, "--backlog", 4)


class HalfOpenTest(HostileTest):
    """A stranger is silent after a part of its set-up."""

    def setUp(self):
        self.streams = []

    def stranger(self, source, said):
        stream = socket.create_connection(("127.0.0.1", self.port), source_address=(source, 0))
        self.addCleanup(stream.close)
        hello = wire.hello(stream.getsockname()[1])
        stream.sendall(wire.startup(wire.REQUEST_KEY, hello, depths=wire.UNTIL_READY)[:said])
        stream.setblocking(False)
        self.streams.append(stream)

    def leave(self):
        for stream in self.streams:
            stream.close()

    def crowd(self, said, source="127.0.0.2"):
        """Keeps so many of them there, whoever of them is sent away."""

        def attack():
            for stream in list(self.streams):
                try:
                    gone = stream.recv(1000) == b""
                except BlockingIOError:
                    gone = False
                except ConnectionResetError:
                    gone = True
                if gone:
                    stream.close()
                    self.streams.remove(stream)
            while len(self.streams) < MORE[said]:
                self.stranger(source, said)

        return attack

    def from_one_address(self, said):
        self.start(*FEW)
        attack = self.crowd(said)
        attack()
        self.advance(20, attack)
        self.leave()

    def test_a_crowd_from_one_address_that_only_connects_keeps_nobody_out(self):
        self.from_one_address(NOTHING)

    def test_a_crowd_from_one_address_that_says_half_of_its_request_keeps_nobody_out(self):
        self.from_one_address(HALF)

    def test_a_crowd_from_one_address_that_never_sends_its_first_message_keeps_nobody_out(self):
        self.from_one_address(ALL)

    def test_crowds_from_many_addresses_keep_nobody_out_who_comes_a_second_later(self):
        self.start(*FEW, healthy=False)
        for said, size in MORE.items():
            for number in range(size):
                self.stranger("127.0.1.%d" % (1 + number % 30), said)
        time.sleep(SECOND)
        self.start_healthy()
        self.advance(20)
        self.leave()

    def test_a_crowd_takes_no_place_of_the_backlog(self):
        self.start("--backlog", 2, healthy=False)
        for said in (NOTHING, HALF, ALL):
            for number in range(20):
                self.stranger("127.0.0.%d" % (2 + number), said)
        self.start_healthy()
        self.advance(5)
        self.leave()

    def test_strangers_are_the_first_to_go_when_descriptors_run_short(self):
        self.start(healthy=False, descriptors=48)
        if self.build == "asan":
            self.skipTest("without a descriptor the sanitizer takes good memory for bad: it looks through a pipe")
        for said in (NOTHING, ALL):
            for number in range(40):
                self.stranger("127.0.0.%d" % (2 + number), said)
        time.sleep(SECOND)
        self.start_healthy()
        self.advance(20)
        self.leave()


class GoneTest(HostileTest):
    """Peers that have connected and are gone again before anybody takes them."""

    def test_who_was_gone_before_it_was_accepted_is_not_handed_out_and_not_kept(self):
        self.start("--accept", 0, "--backlog", 64, healthy=False)
        for _ in range(6):
            for _ in range(50):
                with contextlib.suppress(Ended), Peer(self.port) as peer:
                    peer.shake().reset()
            self.until(lambda: self.victim.descriptors() <= self.quiet, "those that are gone stay")
        self.victim.say("accept")
        self.start_healthy()
        self.advance(5)
        self.assertEqual(0, self.stats()["unheard"], "somebody who was gone was handed out")


class TextTest(HostileTest):
    """What is told of peers that come by the thousand, each from another place."""

    def breach(self, source):
        with Peer(self.port, source=source) as peer:
            port = peer.shake().port()
            peer.say(wire.DATA, sequence=77)
            peer.wait_for_end()
        return port

    def test_after_thousands_of_peers_the_reason_of_an_end_is_still_told(self):
        self.start()
        for number in range(5000):
            source = "127.0.%d.%d" % (1 + number // 200, 1 + number % 200)
            port = self.breach(source)
        self.assertIn("MSeq: not the next in sequence", self.why(port, source))

    def test_peers_that_are_rejected_by_the_thousand_do_not_fill_the_log(self):
        self.start()
        for _ in range(1500):
            with contextlib.suppress(Ended), Peer(self.port, adverts=0) as peer:
                peer.shake()
        lines = self.victim.complained().count("log: ")
        self.assertGreater(lines, 0)
        self.assertLess(lines, 500)


if __name__ == "__main__":
    unittest.main(verbosity=2)
