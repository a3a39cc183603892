"""Reads the fenced blocks of the documents, and the marks that stand before them.

A block's language says what becomes of it:

    ```sh    is run; a ```text block after it is what it prints, where any number may be another
    ```python  is run
    ```cpp   is part of the file that the mark before it names, or stands alone and is compiled; so is ```c
    ```text  with the mark <!-- drawing --> is a picture, and so is ```mermaid

and a mark, an HTML comment on the line before, says what is special:

    <!-- not run: REASON -->         why a block cannot be run by a test
    <!-- background: WORDS -->       goes on running until the end of the page; it is up when it has printed WORDS
    <!-- file: PATH -->              the block stands in this file, word for word
    <!-- drawing -->                 nothing to run
"""

import dataclasses
import pathlib
import re

FENCE = re.compile(r"^\s*(```+|~~~+)\s*(\S*)\s*$")
MARK = re.compile(r"^<!--\s*(not run|background|file|drawing)(?::\s*(.*?))?\s*-->$")


@dataclasses.dataclass
class Block:
    document: str
    line: int
    language: str
    text: str
    mark: str = ""
    argument: str = ""
    expected: str | None = None  # sh: the text block that follows it

    def place(self):
        return "%s:%d" % (self.document, self.line)


def blocks_of(document, text):
    """The blocks of one document, in order; a text block that shows an output belongs to its command."""
    found, before, inside = [], "", None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if inside is not None:
            if fence and line.strip() == inside:
                inside = None
            else:
                found[-1].text += line + "\n"
            continue
        if fence:
            mark = MARK.match(before)
            found.append(Block(document, number, fence.group(2), "", *((mark.group(1), mark.group(2) or "") if mark else ())))
            inside = fence.group(1)
        if line.strip():
            before = line.strip()
    if inside is not None:
        raise ValueError("%s: the last block has no end" % document)
    return _with_outputs(found)


def _with_outputs(found):
    blocks = []
    for block in found:
        if block.language == "text" and not block.mark and blocks and blocks[-1].language == "sh":
            blocks[-1].expected = block.text
        else:
            blocks.append(block)
    return blocks


def complaint(block):
    """Why a block is neither run nor justified, or None."""
    if block.mark == "not run":
        return None if len(block.argument) >= 10 else "says it is not run, but not why"
    if block.language == "sh":
        return None
    if block.language in ("c", "cpp", "mermaid", "python"):
        return None
    if block.language == "text" and block.mark == "drawing":
        return None
    if block.language == "text":
        return "shows an output, but no command stands before it"
    return "has the language '%s', which no test runs" % block.language


def same_but_for_numbers(expected, actual):
    """Whether two outputs are equal when every number and every run of blanks may be another."""
    return _masked(expected) == _masked(actual)


def _masked(text):
    lines = [re.sub(r"\s+", " ", re.sub(r"\d+([.,]\d+)*", "#", line)).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def documents(root):
    """README.md, those of samples and tools, and all under docs/."""
    root = pathlib.Path(root)
    paths = [root / "README.md", root / "tools/README.md"]
    paths += [*sorted((root / "samples").rglob("README.md")), *sorted((root / "docs").rglob("*.md"))]
    return [(str(path.relative_to(root)), path.read_text()) for path in paths]
