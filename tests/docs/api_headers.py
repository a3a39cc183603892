"""Reads what the headers of api/esdp declare: classes with their calls, structures with their members, enumerations."""

import dataclasses
import re


@dataclasses.dataclass
class Declaration:
    text: str  # in one line, blanks as one, without what follows as a body
    comment: str  # what stands above it


@dataclasses.dataclass
class Type:
    name: str
    kind: str  # class, struct or enum
    comment: str
    public: list = dataclasses.field(default_factory=list)  # Declarations; of an enum: its values

    def calls(self):
        """The calls that a user writes: no constructors, destructors and operators."""
        found = [declaration for declaration in self.public if re.match(r"[^(=<]*(<[\w:<>, ]*>[^(=<]*)?\(", declaration.text)]
        return [
            call
            for call in found
            if not re.search(rf"operator|friend|[~ ]?\b{self.name}\(|static_assert", call.text)
        ]

    def members(self):
        """name -> default ("" for none), of a structure."""
        found = {}
        for declaration in self.public:
            match = re.fullmatch(r"(?:const )?[\w:<>, &()*]+?[ &](\w+)(?: = (.*))?;", declaration.text)
            if match and declaration not in self.calls():
                found[match.group(1)] = match.group(2) or ""
        return found

    def values(self):
        return [declaration.text for declaration in self.public]


def name_of(call):
    """Of a call: the word before its first parenthesis."""
    return re.search(r"(\w+)\(", call.text).group(1)


class _Reader:
    """One pass over a header. Bodies and initial values in braces are jumped over."""

    def __init__(self, text):
        self.text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        self.at = 0
        self.types = {}
        self.functions = []
        self.constants = {}

    def skip_braces(self):
        """From a `{` to behind its `}`."""
        depth = 0
        while True:
            depth += {"{": 1, "}": -1}.get(self.text[self.at], 0)
            self.at += 1
            if depth == 0:
                return

    def take_comment(self):
        end = self.text.find("\n", self.at)
        line = self.text[self.at + 2 : end].strip()
        self.at = end
        return line

    def scope(self, into):
        """Statements until the closing brace or the end; `into` takes each Declaration."""
        comment, statement, parens = [], "", 0
        while self.at < len(self.text):
            rest = self.text[self.at :]
            if rest.startswith("//"):
                if statement.strip():
                    self.take_comment()  # beside a declaration: it is not what stands above the next one
                else:
                    comment.append(self.take_comment())
                continue
            if re.match(r"\n\s*\n", rest) and not statement.strip():
                comment = []  # a comment that stands apart belongs to nothing
            letter = rest[0]
            parens += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "}" and parens == 0:
                self.at += 1
                return
            if letter == "{" and parens == 0:
                if self.enter(statement, comment):
                    statement, comment = "", []
                    continue
                start = self.at
                self.skip_braces()
                if re.search(r"=[^()]*$", statement):
                    statement += self.text[start : self.at]
                    continue
                if "(" in statement:
                    into(Declaration(_one_line(statement) + ";", "\n".join(comment)))
                    statement, comment = "", []
                continue
            self.at += 1
            if letter == ";" and parens == 0:
                if statement.strip():
                    into(Declaration(_one_line(statement) + ";", "\n".join(comment)))
                statement, comment = "", []
            elif letter == ":" and re.fullmatch(r"\s*(public|private|protected)", statement):
                into(statement.strip())
                statement, comment = "", []
            else:
                statement += letter

    def enter(self, statement, comment):
        """Whether the brace opens a scope that holds declarations; reads it."""
        head = _one_line(statement)
        match = re.match(r"(?:template <[^>]*> )?(namespace|class|struct|enum class|enum) (?:\[\[\w+\]\] )?(\w+)?", head + " ")
        if match is None or "(" in head:
            return False
        self.at += 1
        if match.group(1) == "namespace":
            self.scope(self.take_function)
        elif match.group(1).startswith("enum"):
            self.take_enum(match.group(2), comment)
        else:
            self.take_class(match.group(2), match.group(1), comment)
        return True

    def take_function(self, declaration):
        constant = re.fullmatch(r"constexpr \w+ (\w+) = (.*);", declaration.text)
        if constant:
            self.constants[constant.group(1)] = constant.group(2)
        elif re.match(r"(?:const )?[\w:]+[*&]? \w+\(", declaration.text):
            self.functions.append(declaration)

    def take_enum(self, name, comment):
        end = self.text.index("}", self.at)
        body = re.sub(r"//.*", "", self.text[self.at : end])
        found = Type(name, "enum", "\n".join(comment))
        for value in body.split(","):
            if value.strip():
                found.public.append(Declaration(value.split("=")[0].strip(), ""))
        self.types[name] = found
        self.at = end + 1

    def take_class(self, name, kind, comment):
        found = Type(name, kind, "\n".join(comment))
        public = [kind == "struct"]

        def take(declaration):
            if isinstance(declaration, str):
                public[0] = declaration == "public"
            elif public[0]:
                found.public.append(declaration)

        self.scope(take)
        self.types[name] = found


def _one_line(text):
    text = re.sub(r"//.*", "", text)
    return re.sub(r"\s+", " ", text).strip().removeprefix("inline ")


def read(text):
    """(types by name, free functions, constants by name) of one header."""
    reader = _Reader(text)
    reader.scope(reader.take_function)
    return reader.types, reader.functions, reader.constants
