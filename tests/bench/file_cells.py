"""The comparisons of files: from one Context to another, beside memory, and beside what fio reads and writes alone."""

import json
import os
import pathlib
import shutil
import tempfile

import programs

BLOCK = "256k"  # of fio, as a slot


class FileCells:
    """Part of cells.Bench."""

    def _files(self):
        with tempfile.TemporaryDirectory(prefix="esdp-bench-") as folder:
            long, short = pathlib.Path(folder, "long"), pathlib.Path(folder, "short")
            fill(long, self.options.file_mib << 20)
            fill(short, min(self.options.file_mib, 64) << 20)
            rows = self._hot_files(long, short)
            rows += self._beside_fio(long)
            rows.append(self._echo_beside_cold(long))
            return rows

    def _file_transfer(self, *words):
        output, _ = programs.Program([self.folder / "tests/bench/file_transfer", *words]).finish(self.options.seconds)
        return json.loads(output)

    def _moved(self, kind, path, *more):
        result = self._file_transfer(kind, path, self.options.seconds, *more)
        return {"value": result["bytes_per_second"], "cpu": result["cpu_seconds_per_gb"]}

    def _hot_files(self, long, short):
        pipelined, memory = (lambda: self._moved("pipelined", long)), (lambda: self._moved("memory", long))
        rows = [self._pairs("SendFile pipelined, hot / Send of 1 MiB from memory", pipelined, memory, ">=", 0.9, "B/s")]
        ours, plain = (lambda: self._moved("pipelined", short)), (lambda: self._moved("plain", short))
        rows.append(self._pairs("SendFile pipelined / plain, %s hot" % _size(short), ours, plain, ">=", 1.5, "B/s"))
        return rows

    def _beside_fio(self, path):
        if not shutil.which("fio"):
            print("without fio: SendFile cold and RecvFile are not measured beside it", flush=True)
            return []
        cold = lambda: self._moved("pipelined", path, "cold")
        read = lambda: _fio(path, path.stat().st_size, "--rw=read", "--ioengine=psync", "--invalidate=1")
        rows = [self._pairs("SendFile pipelined, cold / fio read", cold, read, ">=", 0.97, "B/s")]
        direct = lambda: self._moved("direct", path, "cold")
        deep = ("--rw=read", "--ioengine=libaio", "--direct=1", "--iodepth=2")
        read_direct = lambda: _fio(path, path.stat().st_size, *deep)
        rows.append(self._pairs("SendFile direct / fio read, O_DIRECT", direct, read_direct, ">=", 0.97, "B/s"))
        into = lambda: self._moved("receive", path)
        other = path.with_suffix(".fio")
        write = lambda: _fio(other, path.stat().st_size, "--rw=write", "--ioengine=psync", "--end_fsync=1", "--unlink=1")
        rows.append(self._pairs("RecvFile, kEnd / fio write, synced at the end", into, write, ">=", 0.95, "B/s"))
        return rows

    def _echo_beside_cold(self, path):
        trip = lambda *more: {"value": self._file_transfer("echo", path, self.options.seconds, *more)["p99"]}
        title = "p99 of a 64 B echo beside a cold SendFile / idle"
        return self._pairs(title, lambda: trip("cold"), trip, "<=", 1.5, "us")


def fill(path, length):
    """Bytes that differ, on the medium: only then the page cache can forget them."""
    block = os.urandom(min(length, 1 << 20))
    with open(path, "wb") as file:
        for _ in range(length // len(block)):
            file.write(block)
        os.fsync(file.fileno())


def _size(path):
    return "%d MiB" % (path.stat().st_size >> 20)


def _fio(path, length, *words):
    """One pass over the file: bytes a second and CPU seconds a GB."""
    command = ["fio", "--name=bench", "--filename=%s" % path, "--bs=" + BLOCK, "--size=%d" % length, "--output-format=json"]
    output, cpu = programs.Program(command + list(words)).finish(30)
    job = json.loads(output[output.index("{") :])["jobs"][0]
    side = job["read"] if job["read"]["io_bytes"] else job["write"]
    return {"value": side["bw_bytes"], "cpu": cpu / (length / 1e9)}
