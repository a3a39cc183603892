"""Memory goes in and out by the buffer protocol, and nobody pulls it away while it is lent."""

import array
import errno
import gc
import mmap
import sys
import tempfile

import esdp
import numpy
import pytest

SIZE = 200_000  # above the threshold: the peer reads the memory itself


def exporters():
    pages = mmap.mmap(-1, SIZE)
    return {
        "bytearray": bytearray(SIZE),
        "mmap": pages,
        "array": array.array("B", bytes(SIZE)),
        "numpy": numpy.zeros(SIZE, dtype=numpy.uint8),
        "numpy of doubles": numpy.zeros((50, SIZE // 400), dtype=numpy.float64),
        "memoryview": memoryview(bytearray(SIZE)),
    }


@pytest.mark.parametrize("name", exporters())
def test_memory_of_any_kind_is_received_into_where_it_lies(pair, name):
    memory = exporters()[name]
    source = bytearray(bytes(range(256)) * 1000)[:SIZE]
    with pair.context.register(source) as sending, pair.context.register(memory) as receiving:
        event = pair.move(sending, receiving)
        assert event.bytes == SIZE
        assert event.zero_copy and event.bytes_zero_copy > SIZE // 2
        assert bytes(memoryview(memory).cast("B")) == bytes(source)


def test_a_dma_buf_needs_a_device_and_says_so(context):
    with tempfile.TemporaryFile() as buffer:
        for named in (buffer, buffer.fileno()):
            with pytest.raises(esdp.UnsupportedError, match="dma-buf") as raised:
                context.register_dmabuf(named, 0, 4096)
            assert raised.value.errno == errno.EOPNOTSUPP
        with pytest.raises(ValueError):
            context.register_dmabuf(buffer, offset=0, length=0)
        with pytest.raises(ValueError):
            context.register_dmabuf(buffer, 0, 4096, exposure="none")
    with pytest.raises(ValueError):
        context.register_dmabuf(-1, 0, 4096)
    with pytest.raises(TypeError):
        context.register_dmabuf(bytearray(4096), 0, 4096)
    assert context.stats().regions == 0


def test_a_region_and_a_slice_show_their_bytes(context):
    memory = bytearray(b"0123456789")
    with context.register(memory) as region:
        view = memoryview(region)
        assert view.tobytes() == b"0123456789" and not view.readonly
        view[3] = ord("x")
        assert memory[3:4] == b"x"
        assert bytes(region[2:5]) == b"2x4" and len(region[2:5]) == 3
        assert bytes(region[2:8][1:3]) == b"x4"
        assert bytes(region[-2:]) == b"89"
        assert numpy.frombuffer(region, dtype=numpy.uint8)[9] == ord("9")
        assert region[2:5].offset == 2 and region[2:5].region is region


def test_allocated_memory_is_zeroed_and_outlives_its_region_in_a_view(context):
    region = context.allocate(100_000)
    numbers = numpy.frombuffer(region, dtype=numpy.uint64)
    assert numbers.sum() == 0 and numbers.ctypes.data % 4096 == 0
    region.close()
    del region
    gc.collect()
    numbers[:] = 7
    assert numbers.sum() == 7 * 12_500


def test_a_registered_bytearray_does_not_change_its_size(context):
    memory = bytearray(1000)
    region = context.register(memory)
    with pytest.raises(BufferError):
        memory.extend(b"more")
    region.close()
    memory.extend(b"more")
    assert len(memory) == 1004


def test_a_registered_mmap_does_not_close(context):
    pages = mmap.mmap(-1, 4096)
    with context.register(pages):
        with pytest.raises(BufferError):
            pages.close()
    pages.close()


def test_memory_that_is_shown_stays_when_its_region_closes(context):
    memory = bytearray(1000)
    region = context.register(memory)
    view = memoryview(region)
    region.close()
    with pytest.raises(BufferError):
        memory.clear()
    view.release()
    memory.clear()


def test_memory_is_lent_until_the_terminal_event_although_everything_was_dropped(pair):
    memory = bytearray(SIZE)
    region = pair.context.register(memory)
    pair.right.recv(region[:10], pair.queue)
    with pytest.raises(esdp.BusyError):
        region.close()
    del region
    gc.collect()
    with pytest.raises(BufferError):
        memory.clear()
    pair.right.cancel()
    with pytest.warns(ResourceWarning, match="Region"):
        assert pair.wait()[0].cancelled
    memory.clear()


def test_memory_to_copy_into_is_lent_until_the_terminal_event(pair):
    memory = bytearray(100)
    pair.right.recv(memory, pair.queue)
    with pytest.raises(BufferError):
        memory.clear()
    pair.left.send(b"text", pair.queue)
    assert {event.bytes for event in pair.wait(2)} == {4}
    assert memory[:4] == b"text"
    memory.clear()


def test_no_reference_is_left_behind_by_operations(pair):
    memory = bytearray(100)
    cookie = object()
    before = sys.getrefcount(memory), sys.getrefcount(cookie)
    for _ in range(20):
        pair.right.recv(memory, pair.queue, cookie)
        pair.left.send(b"text", pair.queue, cookie)
        del pair.wait(2)[:]
    assert (sys.getrefcount(memory), sys.getrefcount(cookie)) == before


@pytest.mark.parametrize("target", [b"bytes", memoryview(b"view"), "text", 5])
def test_only_writable_memory_is_received_into(pair, target):
    with pytest.raises(TypeError):
        pair.right.recv(target, pair.queue)
    assert pair.queue.outstanding == 0


def test_bytes_as_a_target_say_what_to_use_instead(pair):
    with pytest.raises(TypeError, match="bytearray"):
        pair.right.recv(b"bytes", pair.queue)


def test_registered_bytes_are_sent_and_never_received_into(pair):
    with pair.context.register(b"a" * SIZE) as region, pair.context.allocate(SIZE) as target:
        assert not region.writable and memoryview(region).readonly
        with pytest.raises(TypeError, match="read-only"):
            pair.right.recv(region, pair.queue)
        assert pair.move(region, target).bytes == SIZE
        assert bytes(target) == b"a" * SIZE


def test_writable_memory_of_bytes_is_refused(context):
    with pytest.raises(TypeError, match="writable=False"):
        context.register(b"text", writable=True)


def test_memory_in_pieces_is_refused(context):
    with pytest.raises(BufferError, match="ascontiguousarray"):
        context.register(numpy.zeros((10, 10))[:, ::2])


def test_ranges_outside_of_a_region_hold_what_is_inside_and_steps_are_refused(context):
    with context.allocate(10) as region:
        assert len(region[5:100]) == 5 and len(region[20:30]) == 0
        with pytest.raises(ValueError, match="step"):
            region[::2]


def test_an_empty_buffer_is_refused(context):
    with pytest.raises(ValueError):
        context.register(bytearray())


def test_lists_of_ranges_travel_in_order(pair):
    with pair.context.register(bytearray(b"abcdefghij")) as source, pair.context.allocate(10) as target:
        pair.right.recvv([target[5:], target[:5]], pair.queue, wait_all=True)
        pair.left.sendv([source[8:], source[:8]], pair.queue)
        assert [event.check().bytes for event in pair.wait(2)] == [10, 10]
        assert bytes(target) == b"defghijabc"  # sent: ijabcdefgh; received: the second half first


def test_a_list_takes_only_registered_memory(pair):
    with pytest.raises(TypeError, match="registered"):
        pair.left.sendv([b"text"], pair.queue)
