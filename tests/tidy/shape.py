"""Rules about the shape of files: sizes, guards, documents, build files."""

import json
import os
import re
import subprocess

from tree import ROOMS_WITH_LIMITS, Breach

HEADER_LINES_MAX = 200
SOURCE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60


def file_sizes(tree):
    """Headers have at most 200 lines, sources 400."""
    for path in tree.sources(ROOMS_WITH_LIMITS):
        limit = HEADER_LINES_MAX if path.endswith(".h") else SOURCE_LINES_MAX
        count = len(tree.lines(path))
        if count > limit:
            yield Breach(path, count, f"{count} lines; the limit is {limit}: split it by idea")


def function_sizes(tree):
    """No function has more than 60 lines."""
    paths = tree.sources(ROOMS_WITH_LIMITS)
    if not paths:
        return
    result = subprocess.run(
        ["ctags-universal", "--output-format=json", "--fields=+ne", "--kinds-C++=f", "--language-force=C++"]
        + ["-f", "-"]
        + paths,
        cwd=tree.root,
        capture_output=True,
        text=True,
        check=True,
    )
    for line in result.stdout.splitlines():
        tag = json.loads(line)
        length = tag.get("end", tag["line"]) - tag["line"] + 1
        if length > FUNCTION_LINES_MAX:
            yield Breach(
                tag["path"], tag["line"], f"{tag['name']} has {length} lines; the limit is {FUNCTION_LINES_MAX}"
            )


def include_guards(tree):
    """Each header is guarded by its own path."""
    for path in tree.select((".h",)):
        guard = "ESDP_" + re.sub(r"[^A-Z0-9]", "_", re.sub("^api/esdp/", "", path).upper()) + "_"
        lines = [line for line in tree.code_lines(path) if line.strip()]
        if lines[:2] != [f"#ifndef {guard}", f"#define {guard}"]:
            yield Breach(path, 1, f"begins with the guard {guard}")


_CONTRACT_LABEL = re.compile(r"\S\s+(Owns|Threads|Blocks|Units|Errors): ")


def contract_blocks(tree):
    """Each part of a class's contract (Owns, Threads, Blocks, Units, Errors) begins a line."""
    for path in tree.select((".h",)):
        for number, line in enumerate(tree.lines(path), 1):
            comment = line.strip().removeprefix("//")
            if comment != line.strip() and _CONTRACT_LABEL.search(comment):
                yield Breach(path, number, "a part of the contract stands within the line: begin a new one")


def one_title(tree):
    """A document begins with its one title."""
    for path in tree.select((".md",)):
        titles = [number for number, line in _prose(tree, path) if line.startswith("# ")]
        if titles != [1]:
            yield Breach(path, titles[-1] if titles else 1, f"one `# Title`, in line 1; found {titles}")


def links_lead_somewhere(tree):
    """A document's links into the repository lead to something."""
    for path in tree.select((".md",)):
        for number, line in _prose(tree, path):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                if re.match("[a-z]+:", target):
                    continue
                if not os.path.exists(os.path.join(tree.root, os.path.dirname(path), target)):
                    yield Breach(path, number, f"{target} does not exist")


def _prose(tree, path):
    """Lines outside fenced blocks, numbered from 1."""
    fenced = False
    for number, line in enumerate(tree.lines(path), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


_MARKERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def no_markers(tree):
    """What is unfinished is an issue, not a remark."""
    for path in tree.paths:
        if path.startswith("tests/tidy/") or path.endswith((".bin", ".png", ".pcap")):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            match = _MARKERS.search(line)
            if match:
                yield Breach(path, number, f"{match.group(0)}: open an issue instead")


def no_dead_files(tree):
    """Each source file is named by the build file of its folder or one above."""
    for path in tree.select((".h", ".cc", ".def")):
        folder, name = os.path.split(path)
        while True:
            build = os.path.join(folder, "BUILD.bazel")
            if build in tree.paths:
                break
            if not folder:
                build = None
                break
            folder = os.path.dirname(folder)
        wanted = os.path.relpath(path, folder or ".")
        if build is None or not _names(tree.text(build), wanted):
            yield Breach(path, 1, "no BUILD.bazel names it")


def _names(build_text, wanted):
    stem = re.sub("(_test)?[.][a-z]+$", "", wanted)  # a list of tests may leave the ending to a loop
    if any(f'"{spelled}"' in build_text for spelled in (wanted, stem, stem + "_test")):
        return True
    # A glob names what matches it; the only form in use is one star for a file's name.
    folder, _, name = wanted.rpartition("/")
    star = f'{folder}/*{os.path.splitext(name)[1]}' if folder else f"*{os.path.splitext(name)[1]}"
    return f'"{star}"' in build_text
