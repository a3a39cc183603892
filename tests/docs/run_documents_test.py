#!/usr/bin/env python3
"""Runs every command of the documents, in order, page by page, in a folder of its own that looks like the repository.

`bazel run TARGET -- ARGUMENTS` runs the program that the test was given; nothing is built here. So that pages can be run
side by side, each has free ports in place of those it names, and a folder of its own in place of /tmp.

    run_documents_test.py            the pages that need no module for Python
    run_documents_test.py python     those about Python
"""

import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import documents

RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
LIMIT = 200.0  # seconds for one block
COMPILERS = {"c": ["gcc", "-std=c89", "-x", "c"], "cpp": ["g++", "-std=c++20", "-x", "c++"]}
ABOUT_PYTHON = sys.argv[1:2] == ["python"]

# What `bazel` means inside a document under test.
BAZEL = """#!/bin/bash
set -eu
[ "$1" = run ] || { echo "bazel: only 'run' is known to the test of the documents" >&2; exit 1; }
shift
while [[ "$1" == -* ]]; do shift; done
target="${1#//}" && shift
[ "${1:-}" != -- ] || shift
[[ "$target" == *:* ]] && program="${target/://}" || program="$target/$(basename "$target")"
exec "%s/$program" "$@"
""" % RUNFILES


class Page:
    """The folder and the running programs of one document."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for entry in RUNFILES.iterdir():
            (self.root / entry.name).symlink_to(entry)
        tools = self.root / ".tools"
        tools.mkdir()
        (tools / "bazel").write_text(BAZEL)
        (tools / "bazel").chmod(0o755)
        self.environment = dict(os.environ, PYTHONPATH=str(RUNFILES / "bindings/python"), PYTHONDONTWRITEBYTECODE="1")
        self.environment.update(HOME=self.folder.name, PATH="%s:%s" % (tools, os.environ.get("PATH", "/usr/bin:/bin")))
        self.temporary = self.root / ".tmp"
        self.temporary.mkdir()
        self.ports = {}  # name -> one that is bound for as long as the page runs
        self.running = []

    def here(self, command):
        """The command with this page's own ports and temporary folder."""
        named = r"(--port |127\.0\.0\.1:)(\d+)"
        command = re.sub(named, lambda match: match.group(1) + self.port_for(match.group(2)), command)
        return re.sub(r"(?<!\S)/tmp/", str(self.temporary) + "/", command)

    def script(self, text):
        """A script, which has the ports that commands before it have."""
        for named, port in self.ports.items():
            text = text.replace("127.0.0.1:%s\"" % named, "127.0.0.1:%d\"" % port.getsockname()[1])
        return text

    def port_for(self, named):
        """Kept by a socket that does not listen: with SO_REUSEADDR a server of the page can, and nobody is given it."""
        if named not in self.ports:
            self.ports[named] = socket.socket()
            self.ports[named].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.ports[named].bind(("127.0.0.1", 0))
        return str(self.ports[named].getsockname()[1])

    def start(self, block):
        return subprocess.Popen(
            ["bash", "-euc", self.here(block.text)],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, block):
        process = self.start(block)
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise
        return process.returncode, output

    def leave_running(self, block):
        """Starts the block and waits until it has printed its words; gives what it printed."""
        process = self.start(block)
        self.running.append(process)
        output, give_up = "", time.monotonic() + LIMIT
        while block.argument not in output and time.monotonic() < give_up:
            if not select.select([process.stdout], [], [], 1)[0]:
                continue
            piece = os.read(process.stdout.fileno(), 65536).decode()
            if not piece:
                break
            output += piece
        return output

    def close(self):
        for process in self.running:
            os.killpg(process.pid, 15)
            process.wait(timeout=LIMIT)
            process.stdout.close()
        for port in self.ports.values():
            port.close()
        self.folder.cleanup()


class RunDocumentsTest(unittest.TestCase):
    """One test for each document is added below."""

    def check_page(self, name, text):
        page = Page()
        self.addCleanup(page.close)
        for block in documents.blocks_of(name, text):
            if block.mark in ("not run", "drawing"):
                continue
            with self.subTest(block.place()):
                if block.language == "sh":
                    self.check_command(page, block)
                elif block.language == "python":
                    self.check_script(page, block)
                elif block.language in COMPILERS:
                    self.check_program(block)

    def check_command(self, page, block):
        if block.mark == "background":
            output = page.leave_running(block)
            self.assertIn(block.argument, output)
        else:
            code, output = page.run(block)
            self.assertEqual(0, code, "the command fails:\n" + output)
        if block.expected is not None and not documents.same_but_for_numbers(block.expected, output):
            self.fail("%s shows another output than the command gives:\n%s" % (block.place(), output))

    def check_script(self, page, block):
        command = ["/usr/bin/python3", "-W", "error", "-"]
        script, where = page.script(block.text), page.environment
        result = subprocess.run(
            command, input=script, env=where, capture_output=True, text=True, timeout=LIMIT, check=False
        )
        self.assertEqual((0, ""), (result.returncode, result.stderr), result.stdout)

    def check_program(self, block):
        if block.mark == "file":
            shown = block.text.strip("\n")
            self.assertIn(shown, (RUNFILES / block.argument).read_text(), block.argument + " has other lines")
            return
        source = block.text if re.search(r"\bmain\(", block.text) else "int main(void) {}\n" + block.text
        result = subprocess.run(
            [*COMPILERS[block.language], "-fsyntax-only", "-Wall", "-Wextra", "-I", RUNFILES / "api", "-"],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(0, result.returncode, result.stderr)


def add_tests():
    for name, text in documents.documents(RUNFILES):
        if ("python" in name) != ABOUT_PYTHON:
            continue
        title = "test_every_command_works_in_" + re.sub(r"\W+", "_", name)
        setattr(RunDocumentsTest, title, lambda self, name=name, text=text: self.check_page(name, text))


add_tests()

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
