#!/usr/bin/env python3
"""Moves of a connection to another queue pair: where a peer may lead the victim, and who may come back to it."""

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

MOVABLE = wire.KNOWS_TOKEN | wire.MAY_BE_MOVED


class Trap:
    """A port where a peer leads somebody to."""

    def __init__(self, address="127.0.0.1"):
        self.listener = socket.create_server((address, 0), backlog=256)
        self.port = self.listener.getsockname()[1]

    def is_empty(self):
        """Whether nobody has connected so far."""
        self.listener.settimeout(0)
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return True
        return False

    def take(self, **greeting):
        """Whoever comes, as a peer that has to answer."""
        self.listener.settimeout(60)
        return Peer(stream=self.listener.accept()[0], **greeting)


class LedTest(HostileTest):
    def trap(self, address="127.0.0.1"):
        trap = Trap(address)
        self.addCleanup(trap.listener.close)
        return trap

    def lead(self, port, **greeting):
        """A peer that asks to be followed to a port of its own address."""
        peer = self.peer(capabilities=MOVABLE, **greeting)
        peer.say(wire.SUSPEND, wire.suspend_to(port))
        return peer

    def follow(self, peer):
        """What the victim says before it follows; it then ends the old queue pair."""
        peer.take(wire.SUSPEND_ACK)
        peer.wait_for_end()
        peer.close()

    def test_nobody_is_moved_who_has_not_asked_for_it(self):
        self.start()
        trap = self.trap()
        for port in (trap.port, self.port, 0, 1):
            self.assert_breach(self.lead(port), "SuspComm", what="port %d" % port)
        self.assertTrue(trap.is_empty())
        self.assertEqual(0, self.stats()["moves"])

    def test_a_server_that_may_be_moved_follows_its_peer_and_goes_on(self):
        self.start("--peer-moves", "guarded")
        trap = self.trap()
        peer = self.lead(trap.port)
        port, token = peer.port(), peer.token
        self.follow(peer)
        with trap.take(capabilities=MOVABLE) as moved:
            moved.answer()
            self.assertEqual(token, moved.token, "it shows what it was given")
            self.assertEqual(b"after the move", moved.echo(b"after the move"))
            moved.reset()
        self.why(port)  # it keeps the name that its peer had first

    def test_a_server_that_may_be_moved_never_connects_to_its_own_listener(self):
        self.start("--peer-moves", "guarded")
        peers = [self.lead(self.port) for _ in range(40)]
        for peer in peers:
            port = peer.port()
            with contextlib.suppress(Ended):
                self.follow(peer)
            self.why(port)  # it has not come to talk to itself
            peer.close()
        self.assertEqual(0, self.stats()["moves"])

    def test_leading_to_its_own_listener_without_a_token_does_not_work_either(self):
        self.start("--peer-moves", "unguarded")
        ports = []
        for _ in range(40):
            peer = self.peer(capabilities=wire.MAY_BE_MOVED)
            ports.append(peer.port())
            peer.say(wire.SUSPEND, wire.suspend_to(self.port))
            peer.wait_for_end()
            peer.close()
        for port in ports:
            self.why(port)
        self.assertEqual(0, self.stats()["moves"])

    def test_a_peer_is_followed_to_its_own_address_and_to_no_other(self):
        self.start("--peer-moves", "guarded")
        other, own = self.trap("127.0.0.1"), self.trap("127.0.0.5")
        peer = self.lead(other.port, source="127.0.0.5")
        port = peer.port()
        self.follow(peer)
        self.why(port)  # nobody listens there at the peer's address
        self.assertTrue(other.is_empty())
        peer = self.lead(own.port, source="127.0.0.5")
        port = peer.port()
        self.follow(peer)
        with own.take(capabilities=MOVABLE) as moved:
            moved.answer().reset()
        self.why(port)

    def test_moves_of_one_connection_are_bounded(self):
        self.start("--peer-moves", "guarded", "--moves-max", 3)
        trap = self.trap()
        peer = self.lead(trap.port)
        port, began, moves = peer.port(), time.monotonic(), 0
        with self.assertRaises(Ended):
            while True:
                self.follow(peer)
                moves += 1
                peer = trap.take(capabilities=MOVABLE, token=os.urandom(16)).answer()
                self.addCleanup(peer.close)
                peer.wait(lambda peer=peer: peer.messages)  # it speaks first
                peer.say(wire.DATA)
                peer.say(wire.SUSPEND, wire.suspend_to(trap.port))
                self.assertLess(moves, 1000, "it goes on for ever")
        self.assertGreaterEqual(moves, 3)
        self.assertLessEqual(moves, 3 + time.monotonic() - began + 1)
        self.assertIn("SuspComm", self.why(port))

    def test_so_many_connections_at_once_may_be_on_their_way_and_no_more(self):
        self.start("--peer-moves", "guarded", "--moves-at-once-max", 4)
        trap = self.trap()
        peers = [self.lead(trap.port) for _ in range(12)]
        ports = [peer.port() for peer in peers]
        for peer in peers:
            peer.wait_for_end()
            peer.close()
        on_their_way = [trap.take() for _ in range(4)]  # and nobody answers them
        self.until(lambda: self.ended(ports) == 8, "the others go on")
        self.assertTrue(trap.is_empty())
        for moved in on_their_way:
            moved.reset()
        self.until(lambda: self.ended(ports) == 12, "they go on")

    def ended(self, ports):
        complained = self.victim.complained()
        return sum("ended 127.0.0.1:%d: " % port in complained for port in ports)


class ReturnTest(HostileTest):
    """The victim moves a connection; its peer comes back, and thieves come before it."""

    def suspended(self, **greeting):
        """An honest peer that has been told where to come back to: the peer, and the port."""
        peer = self.peer(capabilities=MOVABLE, **greeting)
        self.assertEqual(b"before", peer.echo(b"before"))
        self.victim.say("suspend")
        return peer, int.from_bytes(peer.take(wire.SUSPEND).body[6:], "big")

    def leave(self, peer):
        """As an honest peer does: it answers and ends the old queue pair."""
        peer.say(wire.SUSPEND_ACK)
        peer.stream.shutdown(socket.SHUT_WR)
        peer.wait_for_end()

    def come_back(self, peer, port):
        """As an honest peer does, with the token."""
        return self.thief(port, peer, capabilities=MOVABLE, token=peer.token)

    def goes_on(self, returned):
        returned.read_reply().say(wire.DATA)
        self.assertEqual(b"after", returned.echo(b"after"))
        self.assertEqual(1, self.stats()["moves"])
        returned.reset()

    def thief(self, port, peer, *, source="127.0.0.1", **greeting):
        """Somebody who wants to be the peer."""
        thief = Peer(port, source=source, **greeting)
        self.addCleanup(thief.close)
        thief.write(wire.startup(wire.REQUEST_KEY, wire.hello(peer.port(), **thief.greeting)))
        return thief

    def thieves(self, port, peer):
        wrong = bytes((peer.token[0] ^ 1,)) + peer.token[1:]
        half = peer.token[:8] + bytes(8)
        return [
            self.thief(port, peer),
            self.thief(port, peer, capabilities=wire.MAY_BE_MOVED),
            self.thief(port, peer, capabilities=MOVABLE),
            self.thief(port, peer, capabilities=MOVABLE, token=wrong),
            self.thief(port, peer, capabilities=MOVABLE, token=half),
            self.thief(port, peer, capabilities=wire.MAY_BE_MOVED, token=peer.token),  # without the bit it is none
            self.thief(port, peer, capabilities=MOVABLE, token=peer.token, source="127.0.0.9"),
        ]

    def assert_rejected(self, thieves):
        for thief in thieves:
            with thief, self.assertRaises(Ended):
                thief.read_reply()

    def test_who_comes_first_from_the_same_address_without_the_token_gets_nothing(self):
        self.start("--peer-moves", "guarded")
        peer, port = self.suspended()
        early = self.thieves(port, peer)
        self.leave(peer)
        late = self.thieves(port, peer)
        returned = self.come_back(peer, port)
        self.goes_on(returned)
        self.assert_rejected(early + late)
        self.assertGreaterEqual(self.stats()["returns_rejected"], len(early))

    def test_who_guesses_has_to_wait_for_the_answer(self):
        self.start("--peer-moves", "guarded")
        peer, port = self.suspended()
        began = time.monotonic()
        self.assert_rejected([self.thief(port, peer, capabilities=MOVABLE, token=os.urandom(16))])
        self.assertGreater(time.monotonic() - began, 0.5)
        self.leave(peer)
        self.goes_on(self.come_back(peer, port))

    def test_thieves_that_say_nothing_do_not_keep_the_peer_out(self):
        self.start("--peer-moves", "guarded")
        peer, port = self.suspended()
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for thief in silent:
            self.addCleanup(thief.close)
        self.leave(peer)
        self.goes_on(self.come_back(peer, port))
        for thief in silent:
            thief.close()

    def test_the_right_token_that_comes_early_waits_until_the_old_queue_pair_is_gone(self):
        self.start("--peer-moves", "guarded")
        peer, port = self.suspended()
        returned = self.come_back(peer, port)
        self.leave(peer)
        self.goes_on(returned)

    def test_a_token_is_good_for_no_other_connection(self):
        self.start("--peer-moves", "guarded")
        other = self.peer(capabilities=wire.KNOWS_TOKEN)  # stays where it is
        peer, port = self.suspended()
        self.assertNotEqual(other.token, peer.token)
        self.assert_rejected([self.thief(port, peer, capabilities=MOVABLE, token=other.token)])
        self.leave(peer)
        self.goes_on(self.come_back(peer, port))
        other.reset()

    def test_the_token_shown_to_the_servers_own_port_is_rejected(self):
        self.start("--peer-moves", "guarded")
        peer = self.peer(capabilities=MOVABLE)
        self.assert_rejected([self.thief(self.port, peer, capabilities=MOVABLE, token=peer.token)])
        peer.reset()

    def test_a_peer_without_token_is_known_by_its_address_where_that_is_allowed(self):
        self.start("--peer-moves", "unguarded")
        peer = self.peer(capabilities=wire.MAY_BE_MOVED)
        self.victim.say("suspend")
        port = int.from_bytes(peer.take(wire.SUSPEND).body[6:], "big")
        stranger = self.thief(port, peer, source="127.0.0.9")
        self.leave(peer)
        self.assert_rejected([stranger])
        returned = self.thief(port, peer, capabilities=wire.MAY_BE_MOVED)
        self.goes_on(returned)


if __name__ == "__main__":
    unittest.main(verbosity=2)
