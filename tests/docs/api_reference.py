"""Compares docs/api with the headers of api/esdp.

A section `## Name` of a page is a class, a structure or an enumeration; `### Name` inside of it is a call, whose
declarations stand below it as an indented block. Tables list members with their defaults, values, and errors.
"""

import dataclasses
import re

import api_headers

# Which kinds a status code of a header's comment may mean is read from status.md; these are both names.
CODES = re.compile(
    r"\b(InvalidArgument|NotFound|OutOfRange|FailedPrecondition|Unimplemented|ResourceExhausted|Cancelled|"
    r"DeadlineExceeded|Aborted|AlreadyExists|Unavailable|DataLoss|PermissionDenied|Internal)\b"
)


@dataclasses.dataclass
class Entry:
    page: str
    name: str
    declarations: list = dataclasses.field(default_factory=list)
    rows: list = dataclasses.field(default_factory=list)  # of its tables, cell by cell
    text: str = ""


@dataclasses.dataclass
class Section:
    own: Entry  # what stands before its first call
    calls: list = dataclasses.field(default_factory=list)


def read_page(page, text):
    """Sections by name; what stands before the first is under ""."""
    sections = {"": Section(Entry(page, ""))}
    section = sections[""]
    entry = section.own
    for line in text.splitlines():
        if line.startswith("### "):
            entry = Entry(page, line[4:].strip())
            section.calls.append(entry)
        elif line.startswith("## "):
            section = sections[line[3:].strip()] = Section(Entry(page, line[3:].strip()))
            entry = section.own
        elif line.startswith("    "):
            if line.startswith("        ") and entry.declarations:
                entry.declarations[-1] += " " + line.strip()
            else:
                entry.declarations.append(line.strip())
        else:
            entry.text += line + "\n"
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            titles = ("error", "member", "value", "kind", "constant", "")
            if line.startswith("|") and not re.fullmatch(r"[|\- ]+", line) and cells[0] not in titles:
                entry.rows.append(cells)
    return sections


def _unquoted(cell):
    return re.findall(r"`([^`]+)`", cell)


class Comparison:
    """`headers` and `pages` map names of files to their texts."""

    def __init__(self, headers, pages):
        self.types, self.functions, self.constants = {}, [], {}
        for text in headers.values():
            types, functions, constants = api_headers.read(text)
            self.types.update(types)
            self.functions += functions
            self.constants.update(constants)
        self.sections = {}
        self.pages = {page: read_page(page, text) for page, text in pages.items()}
        for sections in self.pages.values():
            self.sections.update({name: section for name, section in sections.items() if name in self.types})
        self.kinds = set(self.types["ErrorKind"].values()) if "ErrorKind" in self.types else set()

    def complaints(self):
        yield from self._types()
        yield from self._calls()
        yield from self._members_and_values()
        yield from self._constants()
        yield from self._errors_of_calls()
        yield from self._kinds()

    def _types(self):
        for name in self.types:
            if name not in self.sections:
                yield f"{name} has no section in docs/api"
        for page, sections in self.pages.items():
            for name in sections:
                if re.fullmatch(r"[A-Z]\w+", name) and name not in self.types:
                    yield f"{page}: {name} is in no header"

    def _declared(self):
        """The text of each call -> the declaration and the name of its class."""
        declared = {}
        for name, found in self.types.items():
            if found.kind != "enum":
                declared.update({(name, call.text): call for call in found.calls()})
        declared.update({("", call.text): call for call in self.functions})
        return declared

    def _entries(self):
        """(class, declaration, entry) of all that the pages describe; functions have no class."""
        free = {function.text for function in self.functions}
        for sections in self.pages.values():
            for name, section in sections.items():
                for entry in section.calls:
                    for text in entry.declarations or [f"{entry.name}: no declaration"]:
                        yield ("" if text in free else name), text, entry

    def _calls(self):
        declared = self._declared()
        described = {(owner, text) for owner, text, _ in self._entries()}
        for owner, text in declared:
            if (owner, text) not in described:
                yield f"{owner or 'api'}: `{text}` has no entry"
        for owner, text, entry in self._entries():
            if (owner, text) not in declared:
                yield f"{entry.page}: `{text}` is not what a header declares in {owner}"
            elif api_headers.name_of(declared[owner, text]) != entry.name:
                yield f"{entry.page}: `{text}` stands under {entry.name}"

    def _members_and_values(self):
        for name, section in self.sections.items():
            found = self.types[name]
            if found.kind == "class":
                continue
            rows = [row for row in section.own.rows if len(row) > 1]
            shown = {_unquoted(row[0])[0]: row for row in rows if _unquoted(row[0])}
            wanted = found.members() if found.kind == "struct" else {value: None for value in found.values()}
            for key in wanted.keys() - shown.keys():
                yield f"{section.own.page}: {name}::{key} is not in the table"
            for key in shown.keys() - wanted.keys():
                yield f"{section.own.page}: {name} has no {key}"
            for key in wanted.keys() & shown.keys():
                if found.kind == "struct" and wanted[key] != "".join(_unquoted(shown[key][1])):
                    yield f"{section.own.page}: {name}::{key} is {wanted[key] or 'without a default'}"
                if not shown[key][-1] and key != "kNone":
                    yield f"{section.own.page}: {name}::{key} says nothing"

    def _constants(self):
        rows = [row for sections in self.pages.values() for row in sections[""].own.rows]
        rows = [row for row in rows if len(row) == 3 and _unquoted(row[0]) and _unquoted(row[1])]
        shown = {_unquoted(row[0])[0]: _unquoted(row[1])[0] for row in rows}
        for name, value in self.constants.items():
            if shown.get(name) != value:
                yield f"the constant {name} = {value} is in no table"

    def _codes(self):
        """code -> kinds, as the page of errors has it."""
        codes = {}
        for row in self.sections["ErrorKind"].own.rows if "ErrorKind" in self.sections else []:
            codes.setdefault(row[1], set()).add(_unquoted(row[0])[0])
        return codes

    def _errors_of_calls(self):
        """What a comment in a header says that a call answers stands in its entry, or in that of all its class's calls."""
        declared, codes = self._declared(), self._codes()
        for owner, text, entry in self._entries():
            call = declared.get((owner, text))
            if call is None:
                continue
            common = self.sections[owner].own.text if owner in self.sections else ""
            told = set(re.findall(r"\bk[A-Z]\w+", entry.text + common)) & self.kinds
            for kind in set(re.findall(r"\((k[A-Z]\w+)[),:;]", call.comment)) & self.kinds - told:
                yield f"{entry.page}: {owner}::{entry.name} may answer {kind}, which its entry does not tell"
            for code in set(CODES.findall(call.comment)):
                if not codes.get(code, set()) & told:
                    yield f"{entry.page}: {owner}::{entry.name} may answer {code}, which its entry does not tell"
            for row in entry.rows:
                for kind in set(re.findall(r"\bk[A-Z]\w+", row[0])) - self.kinds:
                    yield f"{entry.page}: {entry.name} answers {kind}, which is no ErrorKind"

    def _kinds(self):
        """Each kind stands in the table of kinds as the header's comment has it, and somewhere it can come from."""
        if "ErrorKind" not in self.types:
            return
        tables = {page: sections for page, sections in self.pages.items() if "ErrorKind" not in sections}
        sources = "".join(
            " ".join(row[0] for entry in [section.own, *section.calls] for row in entry.rows)
            for sections in tables.values()
            for section in sections.values()
        )
        for kind in sorted(self.kinds - {"kNone"}):
            if f"`{kind}`" not in sources:
                yield f"no call or event tells of {kind}"


def kinds_in_header(text):
    """kind -> (code, errnos), from the comments beside the values of ErrorKind."""
    return {
        match.group(1): (match.group(2), re.findall(r"\bE[A-Z]{2,}\b", match.group(3)))
        for match in re.finditer(r"\b(k[A-Z]\w+),\s+// (\w+), (E[A-Z]+(?: or E[A-Z]+)*)", text)
    }
