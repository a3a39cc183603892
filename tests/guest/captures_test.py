#!/usr/bin/env python3
"""What the captures are asked about streams: each answer is given once as it should be and once as it should not."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import captures  # noqa: E402

HERE, THERE = ("10.77.0.1", 17), ("10.77.0.2", 18)
MADE = [(1, HERE, THERE)]


class Traffic:
    def __init__(self):
        self.frame, self.found = 1, []

    def send(self, to, psn, mseq, bufs=8, ack=0, payload=None):
        self.frame += 1
        self.found.append({"frame": str(self.frame), "to": (to[0], str(to[1])), "psn": psn, "mseq": mseq, "bufs": bufs,
                           "mseqack": ack, "bytes": payload or bytes([mseq % 256, bufs, ack])})

    def verdicts(self):
        return captures.check_streams(self.found, MADE)


class CapturesTest(unittest.TestCase):
    def setUp(self):
        self.traffic = Traffic()
        self.traffic.send(THERE, psn=50, mseq=1)

    def test_numbers_that_follow_each_other_have_no_gap(self):
        for mseq in range(1, 5):
            self.traffic.send(HERE, psn=2**24 - 3 + mseq, mseq=mseq)
        self.assertEqual(self.traffic.verdicts(), ([], [], []))

    def test_a_number_left_out_is_a_gap(self):
        self.traffic.send(HERE, psn=1, mseq=1)
        self.traffic.send(HERE, psn=2, mseq=3)
        self.assertEqual(self.traffic.verdicts()[0], ["frame 4: 3 behind 1"])

    def test_packets_sent_once_more_are_no_gap(self):
        for first in (1, 2, 5):
            for mseq in range(first, 6):
                self.traffic.send(HERE, psn=100 + mseq, mseq=mseq)
        self.traffic.send(HERE, psn=106, mseq=6)
        self.assertEqual(self.traffic.verdicts(), ([], [], []))

    def test_a_message_with_an_old_number_in_a_new_packet_is_a_gap(self):
        for psn, mseq in ((1, 1), (2, 2), (3, 1)):
            self.traffic.send(HERE, psn=psn, mseq=mseq)
        self.assertEqual(self.traffic.verdicts()[0], ["frame 5: 1 behind 2"])

    def test_a_packet_that_carries_something_else_the_second_time_is_looked_at(self):
        self.traffic.send(HERE, psn=1, mseq=1)
        self.traffic.send(HERE, psn=2, mseq=2)
        self.traffic.send(HERE, psn=1, mseq=1, payload=b"else")
        self.assertEqual(self.traffic.verdicts()[0], ["frame 5: 1 behind 2"])

    def test_what_was_not_sent_is_not_acknowledged(self):
        self.traffic.send(HERE, psn=1, mseq=1, ack=2)
        self.assertEqual(self.traffic.verdicts()[1], ["frame 3: 2 is acknowledged, 1 was sent last"])

    def test_more_on_the_way_than_buffers_is_seen(self):
        self.traffic.send(THERE, psn=51, mseq=2, bufs=3)
        for mseq in range(1, 5):
            self.traffic.send(HERE, psn=mseq, mseq=mseq)
        self.assertEqual(self.traffic.verdicts()[2], ["frame 7: 4 with 3 buffers behind 0"])

    def test_a_packet_of_no_connection_is_seen(self):
        self.traffic.send(("10.77.0.3", 5), psn=1, mseq=1)
        self.assertEqual(self.traffic.verdicts()[1], ["frame 3: of no connection"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
