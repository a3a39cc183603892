#!/usr/bin/env python3
"""CPython's own tests of sockets, selectors and what stands on them, under the switch with nothing but SDP: each ends as in a plain
run, but for those of the list, which says why. ESDP_WHOLE=1 runs the slow ones too, of asyncio and of TLS."""

import os
import re
import subprocess
import unittest

from support import SwitchTest

PYTHON = "/usr/bin/python3.11"  # whose tests libpython3.11-testsuite has
SDP = "use sdp server * *:* wait=1000;use sdp client * *:*"
MODULES = ["test_select", "test_epoll", "test_asynchat", "test_asyncore", "test_telnetlib", "test_smtplib", "test_httplib",
           "test_httpservers", "test_socketserver", "test_urllib2_localnet"]
WHOLE = ["test_socket", "test_selectors", "test_poll", "test_ftplib", "test_poplib", "test_imaplib", "test_ssl", "test_xmlrpc",
         "test_asyncio.test_streams", "test_asyncio.test_sendfile", "test_asyncio.test_server",
         "test_asyncio.test_sock_lowlevel", "test_asyncio.test_buffered_proto", "test_asyncio.test_events"]
# Of test_socket, where each minute counts, what is of TCP.
OF_TCP = ["BasicTCPTest*", "TCPCloserTest*", "RecvmsgTCP*", "RecvIntoTCP*", "SendmsgTCP*", "FileObject*", "*FileObject*",
          "NonBlockingTCPTests*", "NetworkConnection*", "SendfileUsing*", "TCPTimeoutTest*", "InheritanceTest*"]
RESULT = re.compile(r"^(\w+) \((test\.[\w.]+)\)(?:\n[^\n]*)?? \.\.\. (?:.*?)(ok|FAIL|ERROR|skipped)", re.M)

# Name: why it may end otherwise than over TCP.
LATER = "over loopback TCP's bytes are there when send returns; these are on their way"
BUSY = "its client closes after a second, which a set-up may take on a busy machine; one_port_test.py has what it tests"
CLEANS = "its server's thread ends the test behind accept, and closes the socket that the client's is about to look at"
BUFFERS = "SO_SNDBUF and SO_RCVBUF do not bound what is on its way"
LOOPS = ("EPoll", "Poll", "Select")
DIFFERS = {
    "test_epoll.TestEPoll.test_control_and_wait": LATER,
    "test_socket.TCPCloserTest.testClose": BUSY,
    "test_socket.NetworkConnectionAttributesTest.testSourceAddress": CLEANS,
    "test_socket.UnbufferedFileObjectClassTestCase.testSmallReadNonBlocking": LATER,
    **{f"test_asyncio.test_sendfile.{loop}EventLoopTests.test_sendfile_{how}close_peer_in_the_middle_of_receiving": BUFFERS
       for loop in LOOPS for how in ("", "fallback_")},
}


class CpythonTest(SwitchTest):
    def results(self, modules, *words, switched):
        """{name: result}"""
        command = [PYTHON, "-m", "test", "-v", "-u", "network", *modules, "-i", "*VSOCK*", *words]
        environment = self.environment(SDP) if switched else self.plain()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, check=False, cwd=self.folder)
        self.assertIn(done.returncode, (0, 2), done.stdout + done.stderr)
        found = {match.group(2).removeprefix("test."): match.group(3) for match in RESULT.finditer(done.stdout + done.stderr)}
        self.assertGreater(len(found), 5, done.stdout + done.stderr)
        return found, done.stdout + done.stderr

    def check(self, modules, *words):
        plain, _ = self.results(modules, *words, switched=False)
        switched, text = self.results(modules, *words, switched=True)
        self.assertGreater(len([each for each in self.moved() if each.sdp > 0]), 5, "by SDP")
        self.assertEqual(set(plain), set(switched))
        differ = {name: (plain[name], result) for name, result in switched.items() if result != plain[name]}
        self.assertEqual({name: each for name, each in differ.items() if name not in DIFFERS}, {}, text)

    def test_modules_on_sockets_end_as_over_tcp(self):
        self.check(MODULES)

    def test_sockets_end_as_over_tcp(self):
        self.check(["test_socket"], *(word for name in OF_TCP for word in ("-m", f"test.test_socket.{name}")))

    @unittest.skipUnless(os.environ.get("ESDP_WHOLE"), "ESDP_WHOLE=1 asks for it")
    def test_everything_ends_as_over_tcp(self):
        for module in WHOLE:
            with self.subTest(module):
                self.check([module])


if __name__ == "__main__":
    unittest.main(verbosity=2)
