"""esdp.socket_compat behaves as the module socket: the same cases on both, and what differs is listed with its reason.

The cases are facts of CPython's own Lib/test/test_socket.py, which cannot run here as it is: it makes its sockets itself.
"""

import array
import contextlib
import errno
import esdp
import http.client
import http.server
import io
import os
import pickle
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from conftest import LIMIT, nobody_listens
from esdp import socket_compat

SHORT = 0.1
HOST = ("127.0.0.1", 0)
MESSAGE = b"Michael Gilfix was here\r\n"

# Cases that end otherwise than on TCP, and why. All others must end the same way.
DIFFERENCES = {
    "fileno_is_a_number": "there is no descriptor before it is connected",
    "a_port_is_known_from_bind_on": "esdp takes the port when it listens",
    "a_bind_to_a_taken_port_fails": "esdp takes the port when it listens",
    "a_connect_that_does_not_wait_goes_on": "nothing could tell that it is over: it waits",
    "flags_wait_or_not_whatever_the_timeout_is": "with a timeout CPython waits in spite of MSG_DONTWAIT, and for less than all",
    "shut_rd_wakes_who_reads": "SDP has no half close of the reading side",
    "an_urgent_byte_is_out_of_line": "SDP's urgent byte stays in its place in the stream",
    "an_urgent_byte_is_asked_for": "SDP's urgent byte stays in its place in the stream",
    "a_buffer_size_is_set": "the buffers are StreamOptions and SocketOptions",
    "a_datagram_socket": "SDP is a stream",
    "a_unix_socket": "SDP has addresses of IP alone",
    "a_server_shares_its_port": "one listener has a port",
    "a_server_of_both_families": "a listener is of one family",
    "a_socket_is_made_of_a_descriptor": "there is no descriptor",
}

# Of socket.socket.
MISSING = {
    "detach": "there is no descriptor",
    "dup": "there is no descriptor",
    "get_inheritable": "there is no descriptor",
    "set_inheritable": "there is no descriptor",
    "recvmsg": "ancillary data passes descriptors, of which there are none",
    "recvmsg_into": "ancillary data passes descriptors, of which there are none",
    "sendmsg_afalg": "of AF_ALG alone",
    "sendto": "of datagrams",
}

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def raised(call, *arguments):
    """What a call ends with, as far as both modules have to agree."""
    try:
        return call(*arguments)
    except Exception as error:
        return next(one.__name__ for one in type(error).__mro__ if one.__module__ in ("builtins", "socket")), getattr(
            error, "errno", None
        )


@contextlib.contextmanager
def pair(module):
    with module.create_server(HOST) as listener:
        client = module.create_connection(listener.getsockname(), timeout=LIMIT)
        server, _ = listener.accept()
    server.settimeout(LIMIT)
    with client, server:
        yield client, server


def receive_all(reader):
    return b"".join(iter(lambda: reader.recv(65536), b""))


def in_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    return thread


# --- bytes ---


@case
def recv_gives_what_was_sent(module):
    with pair(module) as (client, server):
        return client.send(MESSAGE), server.recv(1024)


@case
def recv_leaves_what_it_has_no_room_for(module):
    with pair(module) as (client, server):
        client.sendall(MESSAGE)
        return server.recv(len(MESSAGE) - 3), server.recv(1024)


@case
def recvfrom_has_no_address(module):
    with pair(module) as (client, server):
        client.sendall(MESSAGE)
        return server.recvfrom(1024)


@case
def recv_into_fills_any_writable_memory(module):
    given = []
    for target in (bytearray(40), array.array("B", bytes(40)), memoryview(bytearray(40))):
        with pair(module) as (client, server):
            client.sendall(MESSAGE)
            given.append((server.recv_into(target), bytes(memoryview(target))))
    return given


@case
def recv_into_takes_as_many_as_are_asked_for(module):
    with pair(module) as (client, server):
        client.sendall(MESSAGE)
        target = bytearray(40)
        return server.recv_into(target, 5), bytes(target), server.recvfrom_into(target, 3), server.recv(100)


@case
def wrong_sizes_and_memory(module):
    with pair(module) as (client, server):
        return [
            raised(server.recv, -1),
            raised(server.recv_into, bytearray(5), -1),
            raised(server.recv_into, bytearray(5), 6),
            raised(server.recv_into, b"bytes"),
            raised(server.recv_into, "text"),
            raised(client.send, "text"),
            raised(client.sendall, "text"),
            raised(client.send),
            raised(client.recv, "many"),
        ]


@case
def nothing_is_sent_and_received(module):
    with pair(module) as (client, server):
        return client.send(b""), client.sendall(b""), server.recv(0), server.recv_into(bytearray())


@case
def sendall_sends_all(module):
    with pair(module) as (client, server):
        data = os.urandom(5_000_000)
        thread = in_thread(lambda: (client.sendall(data), client.close()))
        received = receive_all(server)
        thread.join()
        return received == data


@case
def sendall_counts_bytes_and_not_items(module):
    with pair(module) as (client, server):
        return client.sendall(array.array("i", [1, 2, 3])), len(server.recv(12, module.MSG_WAITALL))


@case
def sendmsg_gathers(module):
    with pair(module) as (client, server):
        return client.sendmsg([b"ab", bytearray(b"cd"), memoryview(b"ef")]), server.recv(100)


@case
def flags_peek_wait_for_all_and_do_not_wait(module):
    with pair(module) as (client, server):
        server.settimeout(None)
        empty = raised(server.recv, 10, module.MSG_DONTWAIT)
        client.sendall(MESSAGE)
        peeked = server.recv(7, module.MSG_PEEK)
        thread = in_thread(lambda: (time.sleep(SHORT), client.sendall(b"more")))
        whole = server.recv(len(MESSAGE) + 4, module.MSG_WAITALL)
        thread.join()
        return empty, peeked, whole


@case
def flags_wait_or_not_whatever_the_timeout_is(module):
    with pair(module) as (client, server):
        server.settimeout(4 * SHORT)
        empty = raised(server.recv, 10, module.MSG_DONTWAIT)
        client.sendall(b"part")
        thread = in_thread(lambda: (time.sleep(SHORT), client.sendall(b"part")))
        whole = server.recv(8, module.MSG_WAITALL)
        thread.join()
        return empty, whole


@case
def sendfile_sends_what_is_asked_for(module):
    with tempfile.TemporaryFile() as file, pair(module) as (client, server):
        file.write(bytes(range(250)) * 100)
        file.flush()
        sent = []
        for arguments in ((5, 10), (0, 4), (20_000,), (0,), (30_000,)):
            sent += [client.sendfile(file, *arguments), file.tell()]
        client.close()
        wrong = [raised(server.sendfile, file, 0, count) for count in (-1, 0, 1.5)]
        with open("/dev/null", encoding="utf-8") as text:
            wrong.append(raised(server.sendfile, text))
        server.setblocking(False)
        wrong.append(raised(server.sendfile, file))
        server.setblocking(True)
        return sent, receive_all(server), wrong


# --- ends ---


@case
def a_peer_that_closes_is_the_end(module):
    with pair(module) as (client, server):
        client.sendall(MESSAGE)
        client.close()
        return receive_all(server), server.recv(10), server.recv_into(bytearray(5))


@case
def what_is_shut_down_is_not_written_to(module):
    with pair(module) as (client, server):
        client.shutdown(module.SHUT_WR)
        ended = raised(client.send, b"x"), raised(client.sendall, b"x"), server.recv(10)
        server.sendall(MESSAGE)
        return ended, client.recv(100), client.shutdown(module.SHUT_WR)


@case
def shut_rd_reads_no_more(module):
    with pair(module) as (client, server):
        return server.shutdown(module.SHUT_RD), server.recv(10), client.getpeername() == server.getsockname()


@case
def shut_rd_wakes_who_reads(module):
    with pair(module) as (_, server):
        server.settimeout(4 * SHORT)
        thread = in_thread(lambda: (time.sleep(SHORT), server.shutdown(module.SHUT_RD)))
        given = raised(server.recv, 10)
        thread.join()
        return given


@case
def a_shutdown_of_both_is_the_end_for_the_peer(module):
    with pair(module) as (client, server):
        client.shutdown(module.SHUT_RDWR)
        return server.recv(10), raised(client.send, b"x"), client.recv(10), raised(client.shutdown, 7)


@case
def a_peer_that_aborts_is_a_reset(module):
    with pair(module) as (client, server):
        client.setsockopt(module.SOL_SOCKET, module.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        return raised(server.recv, 10)


@case
def who_sends_to_one_that_has_gone_hears_of_it(module):
    with pair(module) as (client, server):
        server.setsockopt(module.SOL_SOCKET, module.SO_LINGER, struct.pack("ii", 1, 0))
        server.close()
        end = time.monotonic() + LIMIT
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while time.monotonic() < end:
                client.sendall(b"x" * 1000)
            return "never"
        return "told"


@case
def a_closed_socket_does_nothing(module):
    with pair(module) as (client, _), module.create_server(HOST) as listener:
        client.close()
        client.close()
        listener.close()
        calls = [lambda: client.recv(1), lambda: client.recv_into(bytearray(1)), lambda: client.send(b"x"),
                 lambda: client.sendall(b"x"), listener.accept, listener.listen, client.getsockname,
                 client.getpeername, lambda: client.shutdown(2), lambda: client.connect(("127.0.0.1", 1)),
                 lambda: client.bind(HOST), lambda: client.getsockopt(1, 3)]  # fmt: skip
        return [raised(call) for call in calls], client.fileno()


@case
def a_with_closes(module):
    with module.create_server(HOST) as listener:
        pass
    with module.socket() as closed:
        closed.close()
    return listener.fileno(), closed.fileno()


@case
def a_program_that_ends_delivers_what_it_sent(module):
    text = f"""
import sys
from {module.__name__.rpartition(".")[0] or "importlib"} import {module.__name__.rpartition(".")[2]} as socket
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as client:
    client.sendall(b"x" * 700_000)
"""
    if module is socket:
        text = text.replace("from importlib import socket as socket", "import socket")
    with module.create_server(HOST) as listener:
        port = str(listener.getsockname()[1])
        with subprocess.Popen([sys.executable, "-c", text, port]) as program:
            listener.settimeout(LIMIT)
            with listener.accept()[0] as server:
                received = len(receive_all(server))
            return received, program.wait(LIMIT)


# --- connections ---


@case
def what_is_not_connected_or_listening(module):
    with module.socket() as one:
        calls = [lambda: one.recv(1), lambda: one.send(b"x"), one.getpeername, lambda: one.shutdown(2), one.accept]
        return [raised(call) for call in calls]


@case
def what_is_connected_or_bound_is_not_again(module):
    with module.socket() as bound, module.create_server(HOST) as listener, module.socket() as client:
        bound.bind(HOST)
        client.connect(listener.getsockname())
        calls = [lambda: client.connect(HOST), lambda: bound.bind(HOST), client.listen, listener.listen]
        return [raised(call) for call in calls], client.connect_ex(listener.getsockname())


@case
def nobody_listens_there(module):
    with nobody_listens() as address, module.socket() as one, module.socket() as two:
        return (
            raised(one.connect, address),
            two.connect_ex(address),
            raised(module.create_connection, address),
        )


@case
def all_errors_are_told_in_a_group(module):
    with nobody_listens() as address:
        try:
            module.create_connection(address, all_errors=True)
        except ExceptionGroup as group:
            return [type(one).__name__ for one in group.exceptions]


@case
def addresses_that_are_none(module):
    with module.socket() as one:
        wrong = ["text", ("127.0.0.1",), ("127.0.0.1", "x"), ("127.0.0.1", -1), ("127.0.0.1", 65536),
                 ("127.0.0.1", 1, 2), None, ("no such host.invalid", 80)]  # fmt: skip
        return [(raised(one.bind, address), raised(one.connect, address)) for address in wrong]


@case
def names_of_hosts_are_resolved(module):
    with module.create_server(("localhost", 0)) as listener:
        with module.create_connection(("localhost", listener.getsockname()[1])) as client:
            return client.getpeername() == listener.getsockname(), client.family == module.AF_INET


@case
def every_address_of_this_machine(module):
    with module.create_server(("", 0)) as listener:
        with module.create_connection(("127.0.0.1", listener.getsockname()[1])) as client, listener.accept()[0] as server:
            return listener.getsockname()[0], server.getpeername() == client.getsockname()


@case
def both_ends_and_accept_name_the_connection(module):
    with module.create_server(HOST) as listener, module.create_connection(listener.getsockname()) as client:
        server, address = listener.accept()
        with server:
            return address == client.getsockname() == server.getpeername(), server.getsockname() == client.getpeername()


@case
def a_socket_of_ipv6_has_names_of_four(module):
    with module.create_server(("::1", 0), family=module.AF_INET6) as listener:
        with module.create_connection(listener.getsockname()[:2]) as client:
            return client.family, client.getpeername() == listener.getsockname(), len(client.getsockname())


@case
def a_connection_comes_from_the_address_that_is_told(module):
    with module.create_server(HOST) as listener:
        with module.create_connection(listener.getsockname(), source_address=("127.0.0.2", 0)) as client:
            return client.getsockname()[0], listener.accept()[1][0]


@case
def a_server_at_a_taken_port(module):
    with module.create_server(HOST) as listener:
        return raised(module.create_server, listener.getsockname())


@case
def connections_wait_in_the_backlog(module):
    with module.create_server(HOST, backlog=5) as listener, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(module.create_connection(listener.getsockname())) for _ in range(3)]
        clients[2].sendall(MESSAGE)
        servers = [stack.enter_context(listener.accept()[0]) for _ in clients]
        return servers[2].recv(100)


@case
def a_shutdown_of_a_listener_wakes_who_accepts(module):
    with module.create_server(HOST) as listener:
        thread = in_thread(lambda: (time.sleep(SHORT), listener.shutdown(module.SHUT_RDWR)))
        given = raised(listener.accept)
        thread.join()
        return given


@case
def a_pair_is_connected(module):
    left, right = module.socketpair()
    with left, right:
        left.sendall(MESSAGE)
        right.sendall(b"back")
        return right.recv(100), left.recv(100)


# --- time ---


@case
def a_socket_waits_without_end_unless_told(module):
    with module.socket() as one:
        return one.gettimeout(), one.timeout, one.getblocking(), module.getdefaulttimeout()


@case
def the_default_is_what_new_sockets_have(module):
    module.setdefaulttimeout(LIMIT)
    try:
        with module.create_server(HOST) as listener, module.create_connection(listener.getsockname()) as client:
            with listener.accept()[0] as server:
                given = module.getdefaulttimeout(), listener.gettimeout(), client.gettimeout(), server.gettimeout()
        return *given, raised(module.setdefaulttimeout, -1), raised(module.setdefaulttimeout, "x")
    finally:
        module.setdefaulttimeout(None)


@case
def what_is_accepted_waits_although_its_listener_does_not(module):
    with module.create_server(HOST) as listener, module.create_connection(listener.getsockname()):
        listener.settimeout(LIMIT)
        with listener.accept()[0] as server:
            return server.gettimeout()


@case
def blocking_and_time_are_one(module):
    with module.socket() as one:
        given = []
        for change in (lambda: one.setblocking(False), lambda: one.setblocking(True), lambda: one.settimeout(0),
                       lambda: one.settimeout(2.5), lambda: one.settimeout(3), lambda: one.settimeout(None)):  # fmt: skip
            change()
            given.append((one.gettimeout(), one.getblocking()))
        return given


@case
def times_that_are_none(module):
    with module.socket() as one:
        return [raised(one.settimeout, value) for value in (-1, -1.5, "x", float("nan"), [], 1j)]


@case
def late_calls_say_so(module):
    with pair(module) as (client, server), module.create_server(HOST) as listener:
        given = []
        for one in (client, server, listener):
            one.settimeout(SHORT)
        for call in (lambda: server.recv(10), lambda: server.recv_into(bytearray(5)), listener.accept,
                     lambda: client.sendall(bytes(50_000_000))):  # fmt: skip
            try:
                call()
            except TimeoutError as error:
                given.append((error.errno, str(error), type(error) is module.timeout))
        return given


@case
def what_does_not_wait_would_block(module):
    with pair(module) as (client, server), module.create_server(HOST) as listener:
        for one in (client, server, listener):
            one.setblocking(False)
        given = [raised(call) for call in (lambda: server.recv(10), lambda: server.recv_into(bytearray(5)),
                 listener.accept, lambda: client.sendall(bytes(50_000_000)), lambda: client.send(b"x" * 1000))]  # fmt: skip
        return given


@case
def what_does_not_wait_takes_what_is_there(module):
    with pair(module) as (client, server):
        client.sendall(MESSAGE)
        server.recv(1, module.MSG_PEEK)
        server.setblocking(False)
        return server.recv(1024), raised(server.recv, 10)


@case
def a_handler_runs_while_a_recv_goes_on(module):
    with pair(module) as (client, server):
        before = signal.signal(signal.SIGALRM, lambda *_: client.sendall(MESSAGE))
        signal.setitimer(signal.ITIMER_REAL, SHORT)
        try:
            return server.recv(100)
        finally:
            signal.signal(signal.SIGALRM, before)


# --- files ---


@case
def a_file_reads_what_the_peer_wrote_to_its_own(module):
    with pair(module) as (client, server), client.makefile("wb") as writer, server.makefile("rb") as reader:
        writer.write(MESSAGE * 2)
        writer.flush()
        lines = reader.readline(), reader.read(3), reader.readline()
        writer.close()
        client.close()
        return lines, reader.read(), writer.closed, reader.closed


@case
def a_text_file_goes_both_ways(module):
    with pair(module) as (client, server):
        with client.makefile("rw", encoding="utf-8", newline="\n") as left, server.makefile("rw", encoding="utf-8") as right:
            left.write("Grüße\n")
            left.flush()
            read = right.readline()
            right.write(read.upper())
            right.flush()
            return read, left.readline(), left.mode, left.encoding


@case
def an_unbuffered_file(module):
    with pair(module) as (client, server), server.makefile("rb", 0) as reader, client.makefile("wb", 0) as writer:
        written = writer.write(MESSAGE)
        return written, reader.readline(), type(reader).__name__, reader.mode, reader.readable(), reader.writable()


@case
def a_file_outlives_its_socket(module):
    with pair(module) as (client, server):
        reader, writer = server.makefile("rb"), client.makefile("wb")
        server.close()
        client.close()
        writer.write(MESSAGE)
        writer.close()
        with reader:
            return reader.read(), client.fileno()


@case
def a_file_of_a_late_socket_is_read_no_more(module):
    with pair(module) as (_, server), server.makefile("rb") as reader:
        server.settimeout(SHORT)
        return raised(reader.read, 1), raised(reader.read, 1)


@case
def a_file_that_does_not_wait_gives_none(module):
    with pair(module) as (client, server), server.makefile("rb", 0) as reader, client.makefile("wb", 0) as writer:
        server.setblocking(False)
        client.setblocking(False)
        given = reader.read(10), reader.readinto(bytearray(5))
        while writer.write(bytes(1_000_000)) is not None:
            pass
        return given


@case
def modes_that_are_none(module):
    with pair(module) as (client, _):
        return [raised(client.makefile, mode) for mode in ("rrw+", "a", "U")], raised(client.makefile, "r", 0)


@case
def a_file_of_a_closed_file_is_none(module):
    with pair(module) as (_, server):
        reader = server.makefile("rb")
        reader.close()
        return reader.closed, raised(reader.read), raised(server.recv_into, b"")


@case
def a_file_is_named_by_its_descriptor(module):
    with pair(module) as (_, server), server.makefile("rb") as reader:
        return type(raised(lambda: reader.name)).__name__


# --- the rest ---


@case
def what_a_socket_is(module):
    with module.socket(module.AF_INET, module.SOCK_STREAM) as one, module.create_server(HOST) as listener:
        asked = [one.getsockopt(module.SOL_SOCKET, option) for option in (module.SO_TYPE, module.SO_ERROR)]
        asked += [each.getsockopt(module.SOL_SOCKET, module.SO_ACCEPTCONN) for each in (one, listener)]
        asked.append(one.getsockopt(module.SOL_SOCKET, module.SO_TYPE, 4))
        return one.family, one.type, one.proto, asked, one.getsockname()


@case
def options_are_read_back(module):
    with module.socket() as one:
        before = one.getsockopt(module.IPPROTO_TCP, module.TCP_NODELAY)
        one.setsockopt(module.IPPROTO_TCP, module.TCP_NODELAY, 1)
        one.setsockopt(module.SOL_SOCKET, module.SO_REUSEADDR, 1)
        after = one.getsockopt(module.IPPROTO_TCP, module.TCP_NODELAY)
        return before, after, raised(one.getsockopt, module.SOL_SOCKET, 9999), raised(one.setsockopt, 1, 9999, 1)


@case
def a_socket_is_not_pickled(module):
    with module.socket() as one:
        return raised(pickle.dumps, one)


@case
def a_socket_that_is_dropped_open_is_told(module):
    with pytest.warns(ResourceWarning, match="unclosed"):
        one = module.create_server(HOST)
        del one
    return "told"


@case
def a_connected_socket_is_watched(module):
    with pair(module) as (client, server), selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
        shown = []

        def look(most=LIMIT):
            shown.append(sorted((key.fileobj is client, events) for key, events in selector.select(most)))

        look()
        selector.modify(client, selectors.EVENT_READ)
        look(0)
        client.sendall(MESSAGE)
        look()
        server.settimeout(0)
        read = server.recv(100)
        look(0)
        server.shutdown(module.SHUT_WR)
        look()
        return shown, read, raised(server.recv, 1), select.select([server], [server], [], 0)[0]


@case
def fileno_is_a_number(module):
    with module.socket() as one:
        return type(raised(one.fileno)).__name__


@case
def a_socket_is_made_of_a_descriptor(module):
    with module.socket(fileno=socket.socket().detach()) as made:
        return made.family


@case
def a_port_is_known_from_bind_on(module):
    with module.socket() as one:
        one.bind(HOST)
        return one.getsockname()[1] > 0


@case
def a_bind_to_a_taken_port_fails(module):
    with module.create_server(HOST) as listener, module.socket() as second:
        return raised(second.bind, listener.getsockname())


@case
def a_connect_that_does_not_wait_goes_on(module):
    with module.create_server(HOST) as listener, module.socket() as one:
        one.setblocking(False)
        return raised(one.connect, listener.getsockname())


@case
def an_urgent_byte_is_out_of_line(module):
    with pair(module) as (client, server):
        client.send(b"abc", module.MSG_OOB)
        return server.recv(10)


@case
def an_urgent_byte_is_asked_for(module):
    with pair(module) as (client, server):
        client.send(b"abc", module.MSG_OOB)
        server.settimeout(None)
        server.recv(2)
        return server.recv(1, module.MSG_OOB)


@case
def a_buffer_size_is_set(module):
    with module.socket() as one:
        return one.setsockopt(module.SOL_SOCKET, module.SO_RCVBUF, 65536)


@case
def a_datagram_socket(module):
    return module.socket(type=module.SOCK_DGRAM).close()


@case
def a_unix_socket(module):
    return module.socket(module.AF_UNIX).close()


@case
def a_server_shares_its_port(module):
    return module.create_server(HOST, reuse_port=True).close()


@case
def a_server_of_both_families(module):
    return module.create_server(("", 0), family=module.AF_INET6, dualstack_ipv6=True).close()


# --- the comparison ---


@pytest.fixture(autouse=True, params=["qpip"])
def context(request):
    with esdp.Context(fabric=request.param) as context:
        socket_compat.use_context(context)
        yield context
        socket_compat.use_context(None)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_case_ends_as_on_tcp_or_is_listed(name):
    on_tcp, on_esdp = raised(CASES[name], socket), raised(CASES[name], socket_compat)
    if name in DIFFERENCES:
        assert on_tcp != on_esdp, "it does not differ any more: take it off the list"
    else:
        assert on_esdp == on_tcp


def test_every_difference_has_its_case_and_reason():
    assert set(DIFFERENCES) <= set(CASES) and all(DIFFERENCES.values())


def test_every_method_is_there_or_listed():
    def public(module):
        return {name for name in dir(module.socket) if not name.startswith("_")}

    assert public(socket) - public(socket_compat) == set(MISSING)
    assert public(socket_compat) - public(socket) == {"stream"}


def test_what_has_no_descriptor_says_so():
    with socket_compat.socket() as one:
        with pytest.raises(io.UnsupportedOperation, match="no descriptor"):
            one.fileno()
    with pytest.raises(io.UnsupportedOperation, match="no descriptor"):
        socket_compat.socket(fileno=3)
    with pytest.raises(AttributeError, match="fromfd"):
        socket_compat.fromfd
    with socket_compat.socket() as one, pytest.raises(OSError) as refused:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    assert refused.value.errno == errno.ENOPROTOOPT


def test_large_sends_go_zero_copy_and_stay_registered_for_nobody():
    with pair(socket_compat) as (client, server):
        thread = in_thread(lambda: client.sendall(bytes(4_000_000)))
        assert len(server.recv(4_000_000, socket.MSG_WAITALL)) == 4_000_000
        thread.join()
        stats = client.stream.stats()
        # A reader that comes late has the beginning copied.
        assert stats.socket.bytes_sent_zero_copy > 1_000_000 and stats.registered_now == 0


def test_a_child_of_fork_has_a_context_of_its_own():
    program = """
import os
from esdp import socket_compat as socket
with socket.create_server(("127.0.0.1", 0)) as listener:
    child = os.fork()
    if child == 0:
        with socket.create_server(("127.0.0.1", 0)) as own, socket.create_connection(own.getsockname()) as client:
            client.sendall(b"child")
            os._exit(0 if own.accept()[0].recv(9) == b"child" else 1)
    assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=3 * LIMIT)


def test_who_reads_is_sent_home_by_a_close_in_another_thread():
    """As a file descriptor cannot: there the number may have become another file's."""
    with pair(socket_compat) as (client, _):
        thread = in_thread(lambda: (time.sleep(SHORT), client.close()))
        assert raised(client.recv, 10) == ("OSError", errno.EBADF)
        thread.join()


def test_a_socket_may_be_told_its_context():
    with esdp.Context(fabric="sim:5") as simulated, socket_compat.socket(context=simulated) as listener:
        listener.bind(HOST)
        listener.listen()
        with socket_compat.socket(context=simulated) as client:
            client.connect(listener.getsockname())
            with listener.accept()[0] as server:
                client.sendall(MESSAGE)
                assert server.recv(100) == MESSAGE and client.stream.transport == "sim"


class Handler(http.server.BaseHTTPRequestHandler):
    """Gives back what is posted."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


def test_http_of_the_standard_library_runs_over_it():
    with socket_compat.create_server(HOST) as listener:

        def serve():
            connection, address = listener.accept()
            with connection:
                Handler(connection, address, None)

        thread = in_thread(serve)
        client = http.client.HTTPConnection(*listener.getsockname(), timeout=LIMIT)
        client._create_connection = socket_compat.create_connection
        for length in (10, 2_000_000, 0):
            body = os.urandom(length)
            client.request("POST", "/", body)
            with client.getresponse() as answer:
                assert answer.status == 200 and answer.read() == body
        client.close()
        thread.join(LIMIT)
        assert not thread.is_alive()
