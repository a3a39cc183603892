"""What the rules look at: the repository's files, and a way to say what is wrong with one."""

import os
import re
from typing import NamedTuple

ROOMS_WITH_LIMITS = ("api", "impl", "bindings", "samples", "tools")


class Breach(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


class Tree:
    """The files below a folder, by path from it. Hidden folders and Bazel's links are not part of it."""

    def __init__(self, root):
        self.root = os.path.abspath(root)
        self.paths = sorted(self._walk())
        self._texts = {}

    def _walk(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = [
                name
                for name in folders
                if not name.startswith((".", "bazel-")) and name != "__pycache__"
            ]
            for name in names:
                full = os.path.join(folder, name)
                if os.path.isfile(full):
                    yield os.path.relpath(full, self.root)

    def select(self, suffixes, rooms=None):
        """Paths that end in one of the suffixes and lie in one of the rooms (anywhere when there are none)."""
        return [
            path
            for path in self.paths
            if path.endswith(suffixes) and (rooms is None or path.split("/")[0] in rooms)
        ]

    def sources(self, rooms=None):
        return self.select((".h", ".cc"), rooms)

    def text(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
                self._texts[path] = file.read()
        return self._texts[path]

    def lines(self, path):
        return self.text(path).splitlines()

    def code_lines(self, path):
        """The lines of a C++ file without comments and without what its strings say."""
        return code_only(self.text(path)).split("\n")


_TOKEN = re.compile(
    r'R"([^(\s]{0,16})\(.*?\)\1"'  # raw string
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # a character, not a digit separator
    r"|//[^\n]*"
    r"|/\*.*?\*/",
    re.DOTALL,
)


def code_only(text):
    """Blanks comments and literals; the line structure stays. The file names of #include stay too."""

    def blank(match):
        found = match.group(0)
        start = text.rfind("\n", 0, match.start()) + 1
        if found.startswith('"') and re.match(r"\s*#\s*include", text[start : match.start()]):
            return found
        if found.startswith(("//", "/*")):
            return "\n" * found.count("\n")
        return '""' + "\n" * found.count("\n")

    return _TOKEN.sub(blank, text)
