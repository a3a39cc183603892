"""Rules that need a compiler or one of its tools."""

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from tree import Breach

FLAGS = "-std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror".split()
JOBS = os.cpu_count() or 1


def _in_parallel(check, items):
    with ThreadPoolExecutor(JOBS) as pool:
        for breaches in pool.map(check, items):
            yield from breaches


def _run(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def _alone(tree, compiler):
    """Compiles a source that has the header twice and nothing else: it must need no other, and its guard must work."""

    def check(path):
        include = path[len("api/") :] if path.startswith("api/") else path
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
            source.write(f'#include "{include}"\n#include "{include}"\n')
            source.flush()
            command = [compiler, *FLAGS, "-I", tree.root, "-I", os.path.join(tree.root, "api"), source.name]
            result = _run(command, tree.root)
        if result.returncode != 0:
            first = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr[:200])
            return [Breach(path, 1, f"does not compile alone with {compiler}: {first}")]
        return []

    return _in_parallel(check, tree.select((".h",), ("api", "impl", "samples", "tests")))


def headers_alone_with_gcc(tree):
    """Each header compiles alone with g++."""
    return _alone(tree, "g++")


def headers_alone_with_clang(tree):
    """Each header compiles alone with clang++."""
    return _alone(tree, "clang++-14")


def formatted(tree):
    """Every source is as clang-format leaves it."""

    def check(path):
        result = _run(["clang-format-14", "--dry-run", "-Werror", "--style=file", path], tree.root)
        if result.returncode == 0:
            return []
        line = next(iter(result.stderr.splitlines()), f"{path}:1")
        return [Breach(path, int(line.split(":")[1]), "not formatted; run clang-format-14 -i on it")]

    return _in_parallel(check, tree.sources())


def linted(tree):
    """clang-tidy, with the checks of .clang-tidy, has nothing to say about what is shipped."""

    def check(path):
        command = ["clang-tidy-14", "--quiet", path, "--", "-std=c++20", f"-I{tree.root}", f"-I{tree.root}/api"]
        result = _run(command, tree.root)
        return [
            Breach(*_place(line, tree.root))
            for line in result.stdout.splitlines()
            if ": error:" in line or ": warning:" in line
        ]

    # A header is looked at once for every source that includes it.
    return sorted(set(_in_parallel(check, tree.select((".cc",), ("impl", "samples")))))


def _place(line, root):
    path, number, _, text = line.split(":", 3)
    return os.path.relpath(path, root), int(number), text.strip()
