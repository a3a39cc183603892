"""Who is silent: a host that is gone and a path that leads nowhere end a connection, and nothing else does.

Two network namespaces are two hosts, so this needs root.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

IDLE = 1  # seconds, keep_alive_idle
SLACK = 4.0  # of a busy machine
STANDS_STILL = 6 * IDLE  # longer than any bound of keep-alive

SERVER = """
import esdp, json, sys
context = esdp.Context(fabric="qpip")
queue = context.queue()
listener = context.socket(keep_alive_idle=%d)
listener.bind(("10.0.0.2", 0))
listener.listen()
print(listener.local[1], flush=True)
sockets = []
for _ in range(3):
    listener.accept(queue)
    sockets.append(context.take_accepted(queue.get(timeout=60)[0]))
sys.stdin.readline()
word = bytearray(5)
for socket in sockets:
    socket.send(b"hello", queue)
    queue.get(timeout=60)
sys.stdin.readline()
""" % IDLE

# Three connections: one has nothing to say, one has filled the peer's window, one sends when the others have come so far.
CLIENT = """
import esdp, json, sys, time
context = esdp.Context(fabric="qpip")
queue = context.queue(depth=4096)
sockets = {}
targets = {}
for name in ("idle", "sending", "closed window"):
    sockets[name] = context.socket(keep_alive_idle=%d)
    sockets[name].connect(("10.0.0.2", int(sys.argv[1])), queue, "connect")
    queue.get(timeout=60)[0].check()
    targets[name] = bytearray(5)
    sockets[name].recv(targets[name], queue, name, wait_all=True)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(8):
    sockets["closed window"].send(bytes(60000), queue, "filling")
time.sleep(%d)
print("filled", flush=True)
sys.stdin.readline()
begun = time.monotonic()
sockets["sending"].send(bytes(1000), queue, "sent")
print("waits", flush=True)
ended = {}
while len(ended) < 3:
    for event in queue.get(timeout=60):
        if event.cookie in targets:
            ended[event.cookie] = [type(event.error).__name__, time.monotonic() - begun]
print(json.dumps(ended), flush=True)
context.close()
""" % (IDLE, IDLE)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Hosts:
    """`near` runs the client, `far` the server."""

    def __init__(self):
        self.near, self.far = ("esdp-%s-%d" % (side, os.getpid()) for side in ("near", "far"))
        for name in (self.near, self.far):
            ip("netns", "add", name)
            self.run(name, "ip", "link", "set", "lo", "up")
        ip("link", "add", "veth0", "netns", self.near, "type", "veth", "peer", "name", "veth0", "netns", self.far)
        for name, address in ((self.near, "10.0.0.1/24"), (self.far, "10.0.0.2/24")):
            self.run(name, "ip", "address", "add", address, "dev", "veth0")
            self.run(name, "ip", "link", "set", "veth0", "up")
        # Less than the credits of a connection, so that it is the window that closes.
        self.run(self.far, "sh", "-c", "echo 4096 16384 16384 > /proc/sys/net/ipv4/tcp_rmem")

    def run(self, name, *command):
        return subprocess.run(["ip", "netns", "exec", name, *command], check=True, capture_output=True, text=True).stdout

    def start(self, name, program, *arguments):
        command = ["ip", "netns", "exec", name, sys.executable, "-c", program, *arguments]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "delete", name], check=False)


@contextlib.contextmanager
def connected():
    """(hosts, client, server): three connections to a process that stands still, and the window of one is closed."""
    hosts = Hosts()
    programs = []
    try:
        server = hosts.start(hosts.far, SERVER)
        programs.append(server)
        client = hosts.start(hosts.near, CLIENT, server.stdout.readline().strip())
        programs.append(client)
        assert client.stdout.readline() == "ready\n"
        os.kill(server.pid, signal.SIGSTOP)
        say(client)
        assert client.stdout.readline() == "filled\n"
        assert closed_window(hosts), "no window is closed"
        yield hosts, client, server
    finally:
        for program in programs:
            program.kill()
            program.communicate()
        hosts.close()


def closed_window(hosts):
    """Whether a connection of the client probes its peer's window, as the system sees it."""
    return "timer:(persist" in hosts.run(hosts.near, "ss", "-tno")


def say(program):
    program.stdin.write("\n")
    program.stdin.flush()


def test_a_process_that_stands_still_is_not_silent():
    with connected() as (_, client, server):
        say(client)
        assert client.stdout.readline() == "waits\n"
        time.sleep(STANDS_STILL)
        assert client.poll() is None
        os.kill(server.pid, signal.SIGCONT)
        say(server)
        ended = json.loads(client.stdout.readline())
        assert {kind for kind, _ in ended.values()} == {"NoneType"}, ended
        assert all(after >= STANDS_STILL for _, after in ended.values()), ended


@pytest.mark.parametrize("unreachable", [False, True])
def test_a_host_that_is_gone_is_silent_within_the_bound(unreachable):
    with connected() as (hosts, client, _):
        if not unreachable:  # the address stays known, and what is sent there is lost
            link = json.loads(hosts.run(hosts.far, "ip", "-json", "link", "show", "dev", "veth0"))[0]["address"]
            hosts.run(hosts.near, "ip", "neigh", "replace", "10.0.0.2", "lladdr", link, "dev", "veth0", "nud", "permanent")
        hosts.run(hosts.far, "ip", "address", "flush", "dev", "veth0")
        say(client)
        assert client.stdout.readline() == "waits\n"
        ended = json.loads(client.stdout.readline())
        assert {kind for kind, _ in ended.values()} == {"PeerSilentError"}, ended
        assert all(IDLE <= after <= 4 * IDLE + SLACK for _, after in ended.values()), ended
