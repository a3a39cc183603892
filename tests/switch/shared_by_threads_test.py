#!/usr/bin/env python3
"""One connection of several threads, while it is decided what its client speaks: who waits for it goes on with the others."""

import unittest

from support import SwitchTest

# A writer waits for its client's request for so long.
RULES = "use both server * *:* wait=5000;use both client * *:*"
# The thread that waits gets no time of its processor for a while once its client asks (as far as root may say so), so that
# another one decides first.
PROGRAM = """
import os, select, signal, socket, subprocess, sys, threading, time
how, decides = sys.argv[1:]
l = socket.create_server(("127.0.0.1", 0))
told, tell = os.pipe()
def is_pair(s): return any(line.split()[6] == str(os.stat(s.fileno()).st_ino) for line in open("/proc/net/unix").readlines()[1:])
processor = {max(os.sched_getaffinity(0))}
def takes_processor():
    os.sched_setaffinity(0, processor)
    try: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError: pass
plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
busy = subprocess.Popen(["sh", "-c", "kill -STOP $$; while :; do :; done"], env=plain, preexec_fn=takes_processor)

def client():
    s = socket.create_connection(l.getsockname())
    s.sendall(b"ask"); assert s.recv(1) == b""; s.close()
    s = socket.socket(); s.setblocking(False); s.connect_ex(l.getsockname())
    os.read(told, 1)
    try: s.recv(1)  # asks for SDP
    except BlockingIOError: s.setblocking(True)
    if how != "recv": time.sleep(1.2)  # says something when the other side has settled
    s.sendall(b"ask")
    while d := s.recv(100): s.sendall(b"<" + d + b">")

def server():
    os.sched_setaffinity(0, os.sched_getaffinity(0) - processor or processor)  # and threads of the engine
    c, _ = l.accept(); assert c.recv(3) == b"ask"; c.close()
    c, _ = l.accept()
    def in_poll():
        p = select.poll(); p.register(c, select.POLLIN); p.poll()
    wait = {"recv": lambda: None, "poll": in_poll, "select": lambda: select.select([l, c], [], [])}[how]
    got, ready = [], threading.Event()
    def reads():
        os.sched_setaffinity(0, processor); ready.set(); wait(); got.append(c.recv(3))
    reader = threading.Thread(target=reads, daemon=True); reader.start(); ready.wait(); time.sleep(0.2)
    threading.Timer(0.5 if decides == "writer" else 1.5, os.kill, (busy.pid, signal.SIGKILL)).start()
    os.kill(busy.pid, signal.SIGCONT); time.sleep(0.1); os.write(tell, b"!")
    if decides == "writer": c.sendall(b"hello")
    reader.join(10); assert got == [b"ask"], (got, reader.is_alive())
    assert is_pair(c)
    if decides != "writer": c.sendall(b"hello")
    assert c.recv(7, socket.MSG_WAITALL) == b"<hello>"
    c.close()

child = os.fork()
if child == 0:
    try: server(); os._exit(0)
    finally: os._exit(1)
try: client(); assert os.waitpid(child, 0)[1] == 0; print("each")
finally: busy.kill()
"""

# One thread accepts, and tells a set by which another one waits, that takes the processor at once, before the call is over.
SET = """
import os, select, socket, sys, threading, time
l = socket.create_server(("127.0.0.1", 0))
processor = {max(os.sched_getaffinity(0))}

def client():
    for _ in range(2):
        s = socket.create_connection(l.getsockname())
        s.sendall(b"ask"); assert s.recv(3) == b"yes"; time.sleep(0.3)
        s.sendall(b"more"); assert s.recv(3) == b"end"; s.close()

def server():
    c, _ = l.accept(); c.recv(3); c.sendall(b"yes"); c.recv(4); c.sendall(b"end"); c.close()
    c, _ = l.accept(); time.sleep(0.3)  # it has asked
    set, waits, got = select.epoll(), threading.Event(), []
    def works():
        os.sched_setaffinity(0, processor)
        try: os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        except PermissionError: pass
        waits.set()
        for bytes, answer in ((3, b"yes"), (4, b"end")):
            if set.poll(10): got.append(c.recv(bytes)); c.sendall(answer)
    worker = threading.Thread(target=works); worker.start(); waits.wait(); time.sleep(0.2)
    os.sched_setaffinity(0, processor)
    set.register(c, select.EPOLLIN)
    worker.join(); assert got == [b"ask", b"more"], got
    c.close()

child = os.fork()
if child == 0:
    try: server(); os._exit(0)
    finally: os._exit(1)
client(); assert os.waitpid(child, 0)[1] == 0; print("told")
"""


class SharedByThreadsTest(SwitchTest):
    def check(self, how, who):
        output = self.finish(self.start_python(PROGRAM, how, who, rules=RULES))[0]
        self.assertEqual(output, "each\n")
        self.assertEqual(len(self.moved("accepted")), 2, self.log_text())

    def test_who_reads_goes_on_when_a_writer_finds_the_request(self):
        self.check("recv", "writer")

    def test_who_reads_goes_on_when_the_request_is_answered_for_the_program(self):
        self.check("recv", "answer")

    def test_who_polls_goes_on_when_a_writer_finds_the_request(self):
        self.check("poll", "writer")

    def test_who_polls_goes_on_when_the_request_is_answered_for_the_program(self):
        self.check("poll", "answer")

    def test_who_selects_goes_on_when_a_writer_finds_the_request(self):
        self.check("select", "writer")

    def test_who_selects_goes_on_when_the_request_is_answered_for_the_program(self):
        self.check("select", "answer")

    def test_a_set_tells_of_what_a_connection_becomes_while_it_is_told_of_it(self):
        for _ in range(3):
            self.log.unlink(missing_ok=True)
            output = self.finish(self.start_python(SET, rules=RULES))[0]
            self.assertEqual(output, "told\n")
            self.assertEqual(len(self.moved("accepted")), 2, self.log_text())


if __name__ == "__main__":
    unittest.main()
