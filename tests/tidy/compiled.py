"""Rules that need a compiler or one of its tools."""

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from tree import Breach

FLAGS = "-std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror".split()
JOBS = os.cpu_count() or 1
BATCH = 20  # .clang-tidy names as many programs


def _in_parallel(check, items):
    with ThreadPoolExecutor(JOBS) as pool:
        for breaches in pool.map(check, items):
            yield from breaches


def _run(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def _python_headers():
    """Of the system's Python, which the bindings are built with, whichever is first in the path."""
    words = _run(["/usr/bin/python3-config", "--includes"], "/").stdout.split()
    return [word.replace("-I", "-isystem", 1) for word in words]


def headers_alone(tree):
    """Each header compiles alone: it needs no other, and its guard works. One compiler tells; the builds have both.

    What a source has as its first include the builds compile alone already, but for what is precompiled
    (precompiled.names_what_it_uses looks at that), and include_guards looks at its guard. A test's precompiled header has
    what this rule would miss.
    """
    seen = {_first_include(tree, path) for path in tree.select((".cc",), ("bindings", "impl", "samples", "tools"))}
    python = _python_headers()

    def check(path, generated):
        include = path.removeprefix("api/")
        if include in seen:
            return []
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
            source.write(f'#include "{include}"\n#include "{include}"\n')
            source.flush()
            command = ["clang++-14", *FLAGS, "-I", tree.root, "-I", os.path.join(tree.root, "api"), *python]
            command += ["-isystem", generated, source.name]
            result = _run(command, tree.root)
        if result.returncode != 0:
            first = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr[:200])
            return [Breach(path, 1, f"does not compile alone: {first}")]
        return []

    headers = tree.select((".h",), ("api", "bindings", "impl", "samples", "tests", "tools"))
    with tempfile.TemporaryDirectory() as generated:
        _generate(tree, generated)
        return list(_in_parallel(lambda path: check(path, generated), headers))


def _first_include(tree, path):
    first = next((line for line in tree.lines(path) if line.startswith("#include ")), "")
    return first.removeprefix("#include ").strip('"')


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
    options = ["-std=c++20", f"-I{tree.root}", f"-I{tree.root}/api", *_python_headers()]
    shipped = tree.select((".cc",), ("bindings", "impl", "samples", "tools"))
    with tempfile.TemporaryDirectory() as generated:
        _generate(tree, generated)
        options += ["-isystem", generated]
        found = _in_parallel(lambda batch: _lint(tree, options, batch), _batches(shipped))
        # A header is looked at once for every batch that includes it.
        return sorted(set(found))


def _generate(tree, folder):
    """What protoc makes of the messages of the tools."""
    for path in tree.select((".proto",), ("tools",)):
        _run(["protoc", f"--proto_path={os.path.dirname(path)}", f"--cpp_out={folder}", path], tree.root)


def _batches(paths):
    """Neighbours in twenties: most of the time goes into the headers, which the sources of a room have in common."""
    rooms = {}
    for path in paths:
        rooms.setdefault(tuple(os.path.dirname(path).split("/")[:2]), []).append(path)
    for members in rooms.values():
        for start in range(0, len(members), BATCH):
            yield members[start : start + BATCH]


def _lint(tree, options, paths):
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
        for number, path in enumerate(paths):  # each may be a program of its own; .clang-tidy knows the names
            source.write(f'#define main main_{number}\n#include "{path}"\n#undef main\n')
        source.flush()
        command = ["clang-tidy-14", "--quiet", f"--config-file={tree.root}/.clang-tidy"]
        command += [source.name if len(paths) > 1 else os.path.join(tree.root, paths[0])]
        command += ["--", *options]
        lines = _run(command, tree.root).stdout.splitlines()
        breaches = [_place(line, tree.root) for line in lines if ": error:" in line or ": warning:" in line]
        batch = os.path.relpath(source.name, tree.root)
    # Names that are local to two of the files may clash, which says nothing about either alone.
    clashing = {path for path, _, text in breaches if "[clang-diagnostic-error" in text}
    if len(paths) > 1 and clashing:
        apart = [path for path in paths if path in clashing]
        if len(apart) in (0, len(paths)):
            apart = paths[: len(paths) // 2]
        rest = [path for path in paths if path not in apart]
        return _lint(tree, options, rest) + _lint(tree, options, apart)
    return [Breach(*breach) for breach in breaches if breach[0] != batch]


def _place(line, root):
    path, number, _, text = line.split(":", 3)
    return os.path.relpath(path, root), int(number), text.strip()
