"""A victim and a healthy client beside it, for tests that attack the one and look at the other."""

import contextlib
import json
import os
import random
import re
import subprocess
import tempfile
import threading
import time
import unittest

from peer import LIMIT, Peer

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROUNDS = 20  # of the healthy client, that an attack lasts at least
CALM_ROUNDS = 3
SLOWER = 100  # than where nobody attacks, and seconds on top: loose, since machines are busy and sanitizers slow
SECONDS_MORE = 20
MEGABYTE = 1 << 20
# What a sanitizer keeps of freed memory to look at must not be taken for what is lost.
QUARANTINE = ":quarantine_size_mb=4"


def seed():
    """Printed, so that a run can be had again with ESDP_SEED."""
    number = int(os.environ.get("ESDP_SEED", 0)) or random.SystemRandom().randrange(1, 1 << 32)
    print("seed", number)
    return number


class Program:
    """One of the two programs: lines in, lines out, and what it complained of."""

    def __init__(self, name, *options, before=()):
        environment = dict(os.environ)
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + QUARANTINE
        self.complaints = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*before, os.path.join(FOLDER, name), *map(str, options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
            bufsize=1,
            env=environment,
        )

    def say(self, line):
        with contextlib.suppress(BrokenPipeError):  # it has died, and what it left is looked at
            self.process.stdin.write(line + "\n")

    def ask(self, line):
        self.say(line)
        answer = self.process.stdout.readline()
        assert answer, "it has died:\n" + self.complained()
        return json.loads(answer)

    def complained(self):
        """All of standard error so far."""
        file = self.complaints.fileno()  # whose position the program shares: what it writes next goes there
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def resident(self):
        with open("/proc/%d/statm" % self.process.pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self):
        """Ends it well, and gives what it printed last."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        last = self.process.stdout.read()
        code = self.process.wait(LIMIT)
        assert code == 0, "code %d\n%s" % (code, self.complained())
        return last

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.complaints):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class HostileTest(unittest.TestCase):
    """Each test starts what it needs. Whatever it did, at the end everybody who is honest has been served, and the victim
    ends without a complaint of a sanitizer."""

    def start(self, *options, healthy=True, descriptors=None):
        """`descriptors`: how many the victim may have."""
        self.healthy = None
        limited = ["sh", "-c", 'ulimit -n %d; exec "$0" "$@"' % descriptors] if descriptors else []
        self.victim = self.program("victim", *options, before=limited)
        match = re.match(r"listening on port (\d+), (\w+)$", self.victim.process.stdout.readline())
        self.assertIsNotNone(match, self.victim.complained())
        self.port, self.build = int(match.group(1)), match.group(2)
        self.quiet = self.victim.descriptors()
        if healthy:
            self.start_healthy()

    def start_healthy(self):
        self.healthy = self.program("healthy", "--port", self.port)
        began = time.monotonic()
        self.advance(CALM_ROUNDS)
        self.calm = (time.monotonic() - began) / CALM_ROUNDS  # how long a round takes where nobody attacks

    def program(self, name, *options, before=()):
        program = Program(name, *options, before=before)
        self.addCleanup(program.kill)
        return program

    def until(self, done, what, pause=0.01):
        """Waits until `done` says so."""
        until = time.monotonic() + LIMIT
        while not (answer := done()):
            if time.monotonic() > until:
                self.fail(what() if callable(what) else what)
            time.sleep(pause)
        return answer

    def stats(self):
        return self.victim.ask("stats")

    # --- the healthy client ---

    def advance(self, rounds=1, attack=lambda: None, pause=0.002):
        """Until the healthy client has been served so often, with the attack going on: `attack` is called again and again."""
        first = self.healthy.ask("report")["rounds"]
        until = time.monotonic() + LIMIT
        while (report := self.healthy.ask("report"))["rounds"] < first + rounds:
            self.assertLess(time.monotonic(), until, "the healthy client is not served: %s" % report)
            attack()
            time.sleep(pause)

    def besiege(self, attack, *, attackers=1, rounds=ROUNDS):
        """Attackers, each in a thread, that attack until the healthy client has been served. `attack` is given a function
        that says whether to go on."""
        over, failures = threading.Event(), []

        def run():
            try:
                while not over.is_set():
                    attack(lambda: not over.is_set())
            except Exception as failure:  # pylint: disable=broad-except
                failures.append(failure)

        began = time.monotonic()
        threads = [threading.Thread(target=run) for _ in range(attackers)]
        for thread in threads:
            thread.start()
        try:
            self.advance(rounds)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        self.assertLess(time.monotonic() - began, SECONDS_MORE + SLOWER * self.calm * rounds)

    # --- the end ---

    def forgotten(self):
        """Whoever attacked has gone, and left nothing behind: no connection, no descriptor."""
        if self.healthy:
            self.advance()  # whatever was going on, it is still served
            report = json.loads(self.healthy.end().splitlines()[-1])
            print("healthy client:", report)
            self.healthy = None
        found = {}

        def clean():
            found.update(self.stats(), descriptors=self.victim.descriptors())
            return found["clients"] == 0 and found["sockets"] == 1 and found["descriptors"] <= self.quiet

        self.until(clean, lambda: "left behind: %s, of %d descriptors" % (found, self.quiet), pause=0.05)

    def level(self, attack, *, times=3, bytes_max=16 * MEGABYTE):
        """The attack, made again and again, takes no more memory than at first."""
        attack()
        self.until(lambda: self.stats()["clients"] <= 2, "the attackers are not forgotten", pause=0.05)
        first = self.victim.resident()
        for _ in range(times - 1):
            attack()
        self.until(lambda: self.stats()["clients"] <= 2, "the attackers are not forgotten", pause=0.05)
        grown = self.victim.resident() - first
        if self.build == "plain":  # a sanitizer keeps books of its own
            self.assertLess(grown, bytes_max)

    def tearDown(self):
        try:
            self.forgotten()
        finally:
            lines = self.victim.complained().splitlines()
            print(*[line for line in lines if not line.endswith(": OK")][-40:], sep="\n")
        self.victim.end()
        self.assertNotIn("ERROR: ", self.victim.complained())
        self.assertNotIn("WARNING: ThreadSanitizer", self.victim.complained())

    # --- attackers ---

    def peer(self, **greeting):
        """A hand-made peer that is connected."""
        peer = Peer(self.port, **greeting)
        self.addCleanup(peer.close)
        return peer.shake()

    def why(self, port, address=r"[\d.]+"):
        """How the victim's side of the connection from this port has ended."""
        pattern = re.compile(r"^ended %s:%d: (.*)$" % (address, port), re.M)
        return self.until(lambda: pattern.search(self.victim.complained()), "no word of port %d" % port).group(1)

    def assert_breach(self, peer, text="", kind="DATA_LOSS", what=""):
        """The victim has ended the connection, and says that the peer is to blame and why. `what`: the peer did."""
        port = peer.port()
        with peer:
            try:
                peer.wait_for_end()
            except TimeoutError:
                self.fail("the connection goes on: " + what)
        why = self.why(port)
        self.assertTrue(why.startswith(kind), "%s: %s" % (what, why))
        self.assertIn(text, why, what)
