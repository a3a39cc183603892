"""esdp.files beside the real esdp_serve, and beside a server that says what it should not."""

import asyncio
import errno
import os
import re
import struct
import subprocess
import sys
import threading
import time

import esdp
import esdp.aio
import esdp.files
import pytest
from conftest import LIMIT, nobody_listens
from esdp import _files_wire
from esdp._files_wire import wire

SERVE = "tools/esdp_serve/esdp_serve"
CHUNK = 1 << 20


class Server:
    def __init__(self, root, *options):
        command = [SERVE, str(root), "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = re.search(r"listening on (\S+)$", self.process.stdout.readline())
        assert said is not None
        self.address = said.group(1)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def far(tmp_path):
    (tmp_path / "far").mkdir()
    return tmp_path / "far"


@pytest.fixture
def near(tmp_path):
    (tmp_path / "near").mkdir()
    return tmp_path / "near"


@pytest.fixture
def server(far):
    server = Server(far)
    yield server
    server.kill()


@pytest.fixture
def client(server):
    with esdp.files.Client(server.address, fabric="qpip") as client:
        yield client


def make(path, length):
    path.write_bytes(os.urandom(length))
    return path


def test_folders_are_listed_and_files_described(client, far):
    make(far / "b", 10)
    (far / "a").mkdir()
    make(far / "a" / "x", 20)
    os.symlink("b", far / "link")
    os.mkfifo(far / "pipe")
    name = os.fsdecode(b"no \xff letter")
    make(far / name, 3)
    listed = client.list()
    assert [(one.name, one.kind) for one in listed] == [
        ("a", "folder"),
        ("b", "file"),
        ("link", "link"),
        (name, "file"),
        ("pipe", "other"),
    ]
    assert [(one.name, one.size) for one in client.list("a")] == [("x", 20)]
    about = client.stat("a/x")
    assert (about.name, about.kind, about.size, about.mtime_ns) == ("a/x", "file", 20, (far / "a/x").stat().st_mtime_ns)
    assert about.etag != 0 and client.stat(name.encode(errors="surrogateescape")).size == 3
    for number in range(300):
        (far / "a" / f"{number:03}").touch()
    assert len(client.list("a")) == 301


@pytest.mark.parametrize("check", (False, True))
def test_a_get_that_could_not_be_synced_leaves_nothing_to_go_on_behind(client, far, near, check, monkeypatch):
    make(far / "file", 3 * CHUNK + 5)

    def fail(_):
        raise OSError(errno.EIO, "the disk has failed")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="the disk has failed"):
            client.get("file", near / "file", check=check, sync=True)
    assert os.listdir(near) == []
    client.get("file", near / "file", check=check, sync=True, resume=True)
    assert (near / "file").read_bytes() == (far / "file").read_bytes()


@pytest.mark.parametrize("check", (False, True))
@pytest.mark.parametrize("length", (0, 1, 70_000, CHUNK, 7 * CHUNK + 11))
def test_files_come_and_go_whole_with_their_times(client, far, near, length, check):
    content = make(far / "file", length).read_bytes()
    os.utime(far / "file", ns=(0, 1_700_000_000_123_456_789))
    seen = []
    about = client.get("file", near / "file", check=check, progress=lambda *moved: seen.append(moved))
    assert (near / "file").read_bytes() == content and about.size == length
    assert (near / "file").stat().st_mtime_ns == 1_700_000_000_123_456_789
    assert seen[0] == (0, length) and seen[-1] == (length, length) and seen == sorted(seen)
    seen.clear()
    client.put(near / "file", "again", check=check, progress=lambda *moved: seen.append(moved))
    assert (far / "again").read_bytes() == content and seen[-1] == (length, length)
    assert client.read("file", check=check) == content
    assert client.read("file", length // 3, length // 2, check=check) == content[length // 3 :][: length // 2]
    assert os.listdir(near) == ["file"] and sorted(os.listdir(far)) == ["again", "file"]


@pytest.mark.parametrize("length", (0, 5, 3 * CHUNK + 7))
@pytest.mark.parametrize("check", (False, True))
def test_the_whole_is_compared_with_what_the_server_has(client, far, near, length, check):
    make(far / "file", length)
    client.get("file", near / "file", check=check, sha256=True)
    assert (near / "file").read_bytes() == (far / "file").read_bytes()


def test_holes_stay_holes(client, far, near):
    with open(far / "sparse", "wb") as file:
        file.truncate(20 << 30)
        file.seek(15 << 30)
        file.write(b"in the middle")
    for check in (False, True):
        client.get("sparse", near / "sparse", check=check)
        client.put(near / "sparse", "again", check=check, replace=True)
        for path in (near / "sparse", far / "again"):
            about = path.stat()
            assert about.st_size == 20 << 30 and about.st_blocks * 512 < 8 * CHUNK
            with open(path, "rb") as file:
                file.seek(15 << 30)
                assert file.read(14) == b"in the middle\0"


def test_a_file_of_very_many_parts_is_brought_whole(client, far, near):
    with open(near / "parts", "wb") as file:
        for number in range(1100):
            file.seek(number * 16384)
            file.write(b"%d" % number)
    client.put(near / "parts", "parts")
    assert (far / "parts").read_bytes() == (near / "parts").read_bytes()


def test_folders_are_made(client, far):
    client.make_folder("a")
    client.make_folder("a")
    client.make_folder("a/b")
    assert (far / "a" / "b").is_dir()
    with pytest.raises(FileNotFoundError):
        client.make_folder("nothing/b")


def test_what_the_server_says_no_to_is_an_error_of_python(client, far, near):
    make(far / "file", 10)
    (far / "folder").mkdir()
    for name, kind, number in (
        ("nothing", FileNotFoundError, errno.ENOENT),
        ("../near", PermissionError, errno.EACCES),
        ("folder", ValueError, errno.EINVAL),
        ("x" * 4097, esdp.files.InvalidRequestError, errno.EINVAL),
    ):
        with pytest.raises(kind) as raised:
            client.get(name, near / "file")
        assert isinstance(raised.value, esdp.files.ServerError) and isinstance(raised.value, esdp.Error)
        assert (raised.value.errno, raised.value.filename) == (number, name)
    with pytest.raises(FileExistsError):
        client.put(far / "file", "file")
    with pytest.raises(esdp.files.ChangedError):
        client.read("file", if_match=client.stat("file").etag ^ 1)
    with pytest.raises(ValueError):
        client.read("file", 11)
    with pytest.raises(esdp.InvalidArgumentError, match="not a plain file"):
        client.put(far / "folder", "other")
    assert os.listdir(near) == []
    client.put(make(near / "file", 20), "file", replace=True)
    assert len(client.read("file")) == 20


def test_a_server_that_only_lets_read_says_so(far):
    server = Server(far, "--read-only")
    with esdp.files.Client(server.address, fabric="qpip") as client, pytest.raises(PermissionError):
        client.put(make(far / "file", 10), "new")
    server.kill()


class Enough(Exception):
    pass


def stop_at(limit, act):
    def progress(done, total):
        if done >= limit:
            act()

    return progress


def raise_enough():
    raise Enough


@pytest.mark.parametrize("check", (False, True))
def test_a_get_that_was_stopped_goes_on_where_it_was(client, far, near, check):
    content = make(far / "file", 40 * CHUNK + 5).read_bytes()
    with pytest.raises(Enough):
        client.get("file", near / "file", check=check, progress=stop_at(5 * CHUNK, raise_enough))
    (part,) = near.glob(".esdp-*.part")
    assert part.stat().st_size >= 5 * CHUNK
    seen = []
    client.get("file", near / "file", check=check, resume=True, progress=lambda *moved: seen.append(moved))
    assert seen[0][0] >= 5 * CHUNK and (near / "file").read_bytes() == content and os.listdir(near) == ["file"]


def test_a_chunk_that_was_not_written_before_the_end_is_fetched_again(client, far, near):
    content = make(far / "file", 40 * CHUNK + 5).read_bytes()
    with pytest.raises(Enough):
        client.get("file", near / "file", progress=stop_at(5 * CHUNK, raise_enough))
    (part,) = os.listdir(near)
    subprocess.run(["fallocate", "--punch-hole", "--offset", str(CHUNK), "--length", str(CHUNK), near / part], check=True)
    client.get("file", near / "file", resume=True)
    assert (near / "file").read_bytes() == content


def damage(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def test_a_part_of_other_bytes_is_found_by_the_sum_of_the_whole(client, far, near):
    make(far / "file", 40 * CHUNK)
    with pytest.raises(Enough):
        client.get("file", near / "file", progress=stop_at(5 * CHUNK, raise_enough))
    (part,) = near.glob(".esdp-*.part")
    damage(part, 2 * CHUNK + 100)
    with pytest.raises(esdp.files.DamagedError, match="SHA-256"):
        client.get("file", near / "file", resume=True, sha256=True)
    assert os.listdir(near) == []
    client.get("file", near / "file", resume=True, sha256=True)
    assert (near / "file").read_bytes() == (far / "file").read_bytes()


def test_a_get_with_sums_goes_on_behind_what_still_is_as_it_was_summed(client, far, near):
    make(far / "file", 40 * CHUNK)
    with pytest.raises(Enough):
        client.get("file", near / "file", check=True, progress=stop_at(5 * CHUNK, raise_enough))
    (part,) = near.glob(".esdp-*.part")
    damage(part, 2 * CHUNK + 100)
    begun = []
    client.get("file", near / "file", resume=True, check=True, progress=lambda done, _: begun.append(done))
    assert begun[0] == 2 * CHUNK
    assert (near / "file").read_bytes() == (far / "file").read_bytes() and os.listdir(near) == ["file"]


@pytest.mark.parametrize("check", (False, True))
def test_a_put_that_was_stopped_goes_on_where_it_was(client, far, near, check):
    content = make(near / "file", 40 * CHUNK + 5).read_bytes()
    with pytest.raises(Enough):
        client.put(near / "file", "file", check=check, progress=stop_at(8 * CHUNK, raise_enough))
    seen = []
    give_up = time.monotonic() + LIMIT
    while not (far / "file").exists():
        try:
            client.put(near / "file", "file", check=check, resume=True, progress=lambda *moved: seen.append(moved))
        except esdp.files.UnavailableError as error:  # the server has not noticed yet
            assert time.monotonic() < give_up and error.retry_after is not None
    assert seen[0][0] > 0 and (far / "file").read_bytes() == content


def test_a_server_that_was_killed_is_found_again(far, near):
    content = make(far / "file", 40 * CHUNK).read_bytes()
    server = Server(far)
    with esdp.files.Client(server.address, fabric="qpip") as client:
        with pytest.raises(ConnectionError):
            client.get("file", near / "file", progress=stop_at(5 * CHUNK, server.kill))
        with pytest.raises(ConnectionRefusedError):
            client.stat("file")
        server = Server(far, "--listen", server.address)
        client.get("file", near / "file", resume=True)
        assert (near / "file").read_bytes() == content
        server.kill()
        server = Server(far, "--listen", server.address)
        assert client.stat("file").size == 40 * CHUNK, "a connection that has ended is made anew"
    server.kill()


def test_a_file_that_is_written_to_meanwhile_is_not_kept(client, far, near):
    make(far / "file", 200 * CHUNK)

    def write():
        with open(far / "file", "r+b") as file:
            file.write(b"another")

    with pytest.raises(esdp.files.ChangedError):
        client.get("file", near / "file", progress=stop_at(CHUNK, write))
    assert os.listdir(near) == []
    client.get("file", near / "file")
    assert (near / "file").read_bytes()[:7] == b"another"


def test_cancel_of_another_thread_ends_a_call_within_a_second(client, far, near):
    make(far / "file", 20 * CHUNK)

    def cancel():
        threading.Thread(target=client.cancel).start()
        time.sleep(0.1)

    client.cancel()  # nothing is under way
    began = time.monotonic()
    with pytest.raises(esdp.CancelledError):
        client.get("file", near / "file", progress=stop_at(5 * CHUNK, cancel))
    assert time.monotonic() - began < LIMIT
    assert client.stat("file").size == 20 * CHUNK


def test_asyncio_clients_share_a_context(server, far, near):
    contents = [make(far / str(number), 3 * CHUNK + number).read_bytes() for number in range(4)]

    async def main():
        async with esdp.aio.Context(fabric="qpip") as context:
            clients = [esdp.files.AsyncClient(context, server.address) for _ in range(2)]
            gets = [clients[n % 2].get(str(n), near / str(n), check=n < 2) for n in range(4)]
            assert [about.size for about in await asyncio.gather(*gets)] == [len(one) for one in contents]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(clients[0].get("0", near / "0", progress=lambda *_: time.sleep(0.2)), 0.1)
            assert (await clients[0].stat("1")).size == 3 * CHUNK + 1
            for client in clients:
                await client.close()

    asyncio.run(main())
    assert [(near / str(number)).read_bytes() for number in range(4)] == contents


def test_two_gets_to_one_path_do_not_meet(server, far, near):
    make(far / "file", 5 * CHUNK)

    async def main():
        async with esdp.aio.Context(fabric="qpip") as context:
            async with esdp.files.AsyncClient(context, server.address) as one:
                async with esdp.files.AsyncClient(context, server.address) as other:
                    both = await asyncio.gather(*(client.get("file", near / "file") for client in (one, other)), return_exceptions=True)
        assert all(isinstance(result, (esdp.BusyError, esdp.files.FileInfo)) for result in both), both

    asyncio.run(main())
    assert (near / "file").read_bytes() == (far / "file").read_bytes()


def test_the_blocking_client_says_where_it_cannot_be_used(client):
    async def main():
        with pytest.raises(RuntimeError, match="event loop"):
            client.stat("file")

    asyncio.run(main())
    client.close()
    client.close()
    with pytest.raises(esdp.BadHandleError):
        client.stat("file")


def test_nobody_listens():
    with nobody_listens() as (host, port), pytest.raises(ConnectionRefusedError):
        esdp.files.Client((host, port), fabric="qpip")


# --- a server that says what it should not ---

FILE = b"x" * 100


def frame(answer):
    message = answer.SerializeToString()
    return struct.pack(">I", len(message)) + message


def answer_of(request, **fields):
    return frame(wire.Answer(id=request.id, **fields))


def tail(content, crc=None, status=0, offset=0):
    return content + struct.pack(">IIQ", _files_wire.crc32c(memoryview(bytearray(content))) if crc is None else crc, status, offset)


async def says(answer, request):
    """What a client of a server makes of its answer to a read."""

    async def serve(listener):
        async for socket in listener:
            async with socket:
                for index in range(2):
                    (length,) = struct.unpack(">I", await socket.recv_exactly(4))
                    asked = wire.Request.FromString(await socket.recv_exactly(length))
                    await socket.sendall(answer_of(asked, version=1) if index == 0 else answer(asked))
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await socket.recv_exactly(1)

    async with esdp.aio.Context(fabric="qpip") as context, context.listen("127.0.0.1:0") as listener:
        serving = asyncio.create_task(serve(listener))
        client = esdp.files.AsyncClient(context, listener.address, patience=LIMIT)
        try:
            return await request(client)
        finally:
            await client.close()
            listener.close()
            await serving


async def shares_asked_for(weight):
    async def serve(listener):
        async for socket in listener:
            async with socket:
                (length,) = struct.unpack(">I", await socket.recv_exactly(4))
                asked = wire.Request.FromString(await socket.recv_exactly(length))
                await socket.sendall(answer_of(asked, version=1))
                return asked.hello.weight

    async with esdp.aio.Context(fabric="qpip") as context, context.listen("127.0.0.1:0") as listener:
        serving = asyncio.create_task(serve(listener))
        client = esdp.files.AsyncClient(context, listener.address, patience=LIMIT, weight=weight)
        await client.connect()
        await client.close()
        return await serving


def test_a_client_asks_for_so_many_shares():
    assert asyncio.run(shares_asked_for(7)) == 7
    for wrong in (-1, 101):
        with pytest.raises(ValueError, match="weight"):
            asyncio.run(shares_asked_for(wrong))


@pytest.mark.parametrize(
    "kind, answer",
    (
        (esdp.PeerProtocolError, lambda asked: bytes(4)),
        (esdp.PeerProtocolError, lambda asked: struct.pack(">I", 65537)),
        (esdp.PeerProtocolError, lambda asked: struct.pack(">I", 4) + b"\xff" * 4),
        (esdp.PeerProtocolError, lambda asked: frame(wire.Answer(id=99, size=1))),
        (esdp.PeerProtocolError, lambda asked: answer_of(asked, offset=1, size=2, length=1)),
        (esdp.PeerProtocolError, lambda asked: answer_of(asked, size=2, length=3)),
        (
            esdp.PeerProtocolError,
            lambda asked: answer_of(asked, size=9, length=4, sparse=True, extents=[wire.Extent(offset=8, length=4)]),
        ),
        (
            esdp.PeerProtocolError,
            lambda asked: answer_of(asked, size=9, length=3, sparse=True, extents=[wire.Extent(offset=3, length=2)]),
        ),
        (esdp.PeerProtocolError, lambda asked: answer_of(asked, size=100, length=100) + tail(FILE, offset=1)),
        (esdp.files.DamagedError, lambda asked: answer_of(asked, size=100, length=100) + tail(FILE, crc=1)),
        (esdp.files.MediumError, lambda asked: answer_of(asked, size=100, length=100) + tail(FILE, status=7)),
        (esdp.files.UnavailableError, lambda asked: frame(wire.Answer(status=wire.UNAVAILABLE, text="too many"))),
        (esdp.files.ServerError, lambda asked: answer_of(asked, status=wire.UNIMPLEMENTED)),
    ),
)
def test_what_a_server_should_not_say_is_found(kind, answer, near):
    with pytest.raises(kind):
        asyncio.run(says(answer, lambda client: client.read("file", check=True)))
    with pytest.raises(kind):
        asyncio.run(says(answer, lambda client: client.get("file", near / "file", check=True)))
    assert not (near / "file").exists()


def test_a_server_that_does_not_sum_is_told_of(near):
    async def ask(client):
        with pytest.raises(esdp.files.ServerError, match="SHA-256"):
            await client.get("file", near / "file", sha256=True)
        with pytest.raises(esdp.files.MediumError):
            await client.get("file", near / "file")

    asyncio.run(says(lambda asked: answer_of(asked, size=9, length=9) + tail(b"x" * 9, status=7), ask))


def test_more_than_was_asked_for_is_not_taken():
    holes = lambda asked: answer_of(asked, size=9, length=3, sparse=True, extents=[wire.Extent(offset=5, length=3)])
    longer = lambda asked: answer_of(asked, size=100, length=100) + tail(FILE)
    for answer in (holes, longer):
        with pytest.raises(esdp.PeerProtocolError):
            asyncio.run(says(answer, lambda client: client.read("file", 0, 99)))


def test_a_good_answer_of_that_server_is_taken():
    good = lambda asked: answer_of(asked, size=100, length=100) + tail(FILE)
    assert asyncio.run(says(good, lambda client: client.read("file", check=True))) == FILE


def test_without_protobuf_one_is_told_what_to_install():
    program = """
import sys
sys.modules["google"] = None
try:
    import esdp.files
except ImportError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "python3-protobuf" in result.stdout and "esdp[files]" in result.stdout
