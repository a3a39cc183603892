"""Many clients at once: each gets in, however many come, and also where the server has few descriptors."""

import json
import subprocess
import sys

import esdp
from conftest import LIMIT

# Serves one byte to each client, and ends when it has served as many as it was told. Told to be slow it looks away first,
# so that all wait at once. It says what it logged.
SERVER = """
import esdp, json, logging, resource, sys, time
count, descriptors, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))
lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("esdp").addHandler(handler)
logging.getLogger("esdp").setLevel(logging.DEBUG)
context = esdp.Context(fabric="qpip")
queue = context.queue(depth=8192)
listener = context.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(1024)
print(listener.local[1], flush=True)
time.sleep(pause)
accepting = listener.accept(queue, count=0)
closed = 0
while closed < count:
    for event in queue.get(timeout=60):
        if event.has_connection:
            client = context.take_accepted(event)
            client.send(b"x", queue, client)
        elif event.type == "send":
            event.check()
            event.cookie.close(queue, cookie="close")
        elif event.cookie == "close":
            closed += 1
print(json.dumps(lines), flush=True)
"""


def serve(count, descriptors, pause=0.0):
    """What `count` clients that connect at once have got, and what the server logged."""
    command = [sys.executable, "-c", SERVER, str(count), str(descriptors), str(pause)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline())
            got = clients(port, count)
            return got, json.loads(server.stdout.readline())
        finally:
            server.kill()


def clients(port, count):
    """Each leaves when it has its byte."""
    with esdp.Context(fabric="qpip") as context:
        queue = context.queue(depth=4 * count)
        sockets = [context.socket() for _ in range(count)]
        targets = [bytearray(1) for _ in range(count)]
        for number, socket in enumerate(sockets):
            socket.connect(("127.0.0.1", port), queue, number)
        turned_away, served = [], 0
        while served + len(turned_away) < count:
            for event in queue.get(timeout=4 * LIMIT):
                number = event.cookie
                if not event.ok:
                    turned_away.append(event.error)
                elif event.type == "connect":
                    sockets[number].recv(targets[number], queue, number)
                else:
                    served += 1
                    sockets[number].close()
        assert not turned_away, "%d of %d were turned away: %s" % (len(turned_away), count, turned_away[0])
        return b"".join(targets)


def test_a_thousand_clients_at_once_all_get_in():
    got, log = serve(1000, 4096)
    assert got == 1000 * b"x"
    assert not log


def test_so_they_do_where_the_server_looks_away_at_first():
    got, _ = serve(300, 4096, pause=2)
    assert got == 300 * b"x"


def test_with_few_descriptors_they_wait_and_the_log_says_so():
    got, log = serve(100, 64)
    assert got == 100 * b"x"
    assert any("descriptors" in line for line in log), log
