"""Which code holds each rule of docs/rules.md, and which test fails without it: written to docs/spec_map.md.

Code names a rule in a comment, `[R7.4.3]` or `[R7.4.3, R7.4.5]`; a test does with `// R7.4.3` on a line of its own, a
Python test or a scenario file with `# R7.4.3`.
"""

import os
import re
from typing import NamedTuple

from tree import Breach

RULES = "docs/rules.md"
MAP = "docs/spec_map.md"

_NUMBER = r"R\d+(?:\.\d+)*"
_RULE = re.compile(rf"^- \*\*({_NUMBER})\*\* (.*(?:\n  .*)*)", re.MULTILINE)
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_NOT_FOLLOWED = re.compile(rf"^\| ({_NUMBER}) \| (.+?) \|$", re.MULTILINE)
_IN_CODE = re.compile(rf"\[({_NUMBER}(?:, {_NUMBER})*)\]")
_IN_TEST = re.compile(rf"^\s*(?://|#) ({_NUMBER}(?:, {_NUMBER})*)$")
_TEST_CASE = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)", re.MULTILINE)
_PYTHON_CASE = re.compile(r"^\s*def (test_\w+)")


class Place(NamedTuple):
    path: str
    name: str


class Map(NamedTuple):
    rules: dict  # number: sentence
    sections: list  # (title, [number])
    absent: dict  # number: why it is not followed
    code: dict  # number: {Place}
    tests: dict
    strays: list  # Breach: what names no rule


def read(tree):
    text = tree.text(RULES)
    rules = {match[1]: " ".join(match[2].split()) for match in _RULE.finditer(text)}
    absent = dict(match.groups() for match in _NOT_FOLLOWED.finditer(text))
    found = Map(rules, _sections(text), absent, {}, {}, [])
    for path in tree.select((".h", ".cc", ".def"), ("impl",)):
        for number, names in _tags(tree.lines(path), _IN_CODE):
            _note(found, found.code, path, number, names, _function(tree.lines(path), number - 1))
    for path in tree.select((".h", ".cc", ".py", ".txt"), ("tests",)):
        for number, names in _tags(tree.lines(path), _IN_TEST):
            _note(found, found.tests, path, number, names, _test_case(path, tree.lines(path), number - 1))
    return found


def _sections(text):
    parts = _SECTION.split(text)[1:]
    return [(title, [match[1] for match in _RULE.finditer(body)]) for title, body in zip(parts[::2], parts[1::2])]


def _tags(lines, pattern):
    for number, line in enumerate(lines, 1):
        for match in pattern.finditer(line):
            yield number, match[1].split(", ")


def _note(found, where, path, number, names, inside):
    for name in names:
        if name not in found.rules:
            found.strays.append(Breach(path, number, f"{name} is no rule of {RULES}"))
        where.setdefault(name, set()).add(Place(path, inside))


# --- what a tag stands in ---

_NO_NAMES = {"if", "for", "while", "switch", "return", "static_assert", "constexpr", "inline", "const", "decltype"}


def _named(line):
    """What a line of C++ declares or defines, or ""."""
    code = re.sub(r"//.*|\[\[[^\]]*\]\]", "", line)
    row = re.match(r"\s*(ESDP_\w+)\((\w+)", code)
    if row:
        return row[2]
    for match in re.finditer(r"((?:\w+::)*~?\w+)\s*\(", code):
        if match[1] not in _NO_NAMES and not match[1].startswith("__"):
            return match[1]
    match = re.search(r"\b(?:class|struct|union|enum(?: class)?) (\w+)", code) or re.search(r"(\w+)\s*(?:=|;|\{)", code)
    return match[1] if match and match[1] not in _NO_NAMES else ""


def _function(lines, at):
    """The function, type or constant that the comment in line `at` is in, or stands above."""
    line = lines[at]
    indent = len(line) - len(line.lstrip())
    comment = line.lstrip().startswith("//")
    if not comment and (indent == 0 or lines[at].rstrip().endswith("]")) and indent < 4 and _declares(line):
        return _named(line)
    if comment and (indent == 0 or _in_type(lines, at, indent)):
        for below in lines[at + 1 :]:
            if not below.strip():
                return ""  # the comment speaks of the file
            if not re.match(r"\s*(//|template\b|#|\[\[[^\]]*\]\]$)", below):
                return _named(below)
    for above in reversed(lines[: at + 1]):
        if above and not above[0].isspace() and not above.startswith(("//", "}", "#", "namespace", ")")):
            if _named(above):
                return _named(above)
    return ""


def _declares(line):
    code = re.sub(r"//.*", "", line).strip()
    if re.match(r"(return|if|for|while|switch|case|else)\b", code):
        return False
    return bool(re.match(r"(inline |static |constexpr |const |explicit |using |struct |class |enum |[\w:<>]+[&*]? \w)", code))


def _in_type(lines, at, indent):
    """Whether the lines around are members of a type: the nearest line further left opens one."""
    for above in reversed(lines[:at]):
        if above.strip() and len(above) - len(above.lstrip()) < indent and not above.lstrip().startswith("//"):
            if re.match(r"\s*(public|private|protected):", above):
                continue
            return bool(re.match(r"\s*(class|struct|enum)\b", above))
    return False


def _test_case(path, lines, at):
    if path.endswith(".txt"):
        return os.path.splitext(os.path.basename(path))[0]
    if path.endswith(".py"):
        return _next_or_enclosing(lines, at, _PYTHON_CASE)
    indented = lines[at][0].isspace()
    below, above = "\n".join(lines[at:]), "\n".join(lines[: at + 1])
    matches = list(_TEST_CASE.finditer(above)) if indented else list(_TEST_CASE.finditer(below))
    if not matches:
        return os.path.splitext(os.path.basename(path))[0]
    return "%s.%s" % (matches[-1] if indented else matches[0]).groups()


def _next_or_enclosing(lines, at, pattern):
    for below in lines[at:]:
        match = pattern.match(below)
        if match:
            return match[1]
    return ""


# --- the page and the rules about it ---


def page(tree):
    found = read(tree)
    out = [
        "# Rules, code and tests",
        "",
        "For each rule of [rules.md](rules.md): the code that holds it, and the tests that fail without it.",
        "Generated by `tests/tidy/tidy.py --update`.",
    ]
    for title, numbers in found.sections:
        followed = [number for number in numbers if number not in found.absent]
        if not followed:
            continue
        out += ["", f"## {title}", "", "| rule | code | tests |", "|---|---|---|"]
        for number in followed:
            out.append(f"| {number} | {_cell(found.code.get(number))} | {_cell(found.tests.get(number))} |")
    if found.absent:
        out += ["", "## Not followed", "", "| rule | why |", "|---|---|"]
        out += [f"| {number} {found.rules.get(number, '')} | {why} |" for number, why in found.absent.items()]
    return "\n".join(out) + "\n"


def _cell(places):
    cells = []
    for place in sorted(places or ()):
        file = f"[{os.path.basename(place.path)}](../{place.path})"
        cells.append(f"{place.name} ({file})" if place.name else file)
    return "<br>".join(cells)


def every_rule_has_code_and_test(tree):
    """Each rule that is followed is named by code and by a test; each name in code or a test is a rule."""
    if RULES not in tree.paths:
        return
    found = read(tree)
    yield from found.strays
    for number in found.rules:
        missing = [kind for kind, where in (("code", found.code), ("test", found.tests)) if number not in where]
        if number in found.absent:
            if not missing:
                yield Breach(RULES, 1, f"{number} is said not to be followed, and has code and a test")
        elif missing:
            yield Breach(RULES, 1, f"{number} is named by no {' and no '.join(missing)}")
    for number in found.absent:
        if number not in found.rules:
            yield Breach(RULES, 1, f"{number} is said not to be followed, and is no rule")
