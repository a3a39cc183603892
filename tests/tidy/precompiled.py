"""The rule that no source relies on the header that is read before it."""

import re

from tree import Breach

PRECOMPILED = ("impl/precompiled/standard.h", "impl/precompiled/common.h", "impl/precompiled/bindings.h")
ROOMS = ("bindings", "impl", "tools")

# What each precompiled header is used by. Its other names come with one of these, or with a header that gives them too.
USES = {
    "<algorithm>": r"std::(ranges::)?(min|max|clamp|find|find_if|copy|copy_n|fill|fill_n|sort|any_of|all_of|none_of|remove_if)\b",
    "<array>": r"std::array\b",
    "<atomic>": r"std::(atomic\b|atomic_|memory_order)",
    "<chrono>": r"std::chrono\b",
    "<cstddef>": r"std::(byte|size_t|ptrdiff_t)\b|\boffsetof\b",
    "<cstdint>": r"std::u?int(8|16|32|64|ptr)_t\b",
    "<cstring>": r"std::(memcpy|memset|memcmp|memmove|strlen|strerror)\b",
    "<deque>": r"std::deque\b",
    "<functional>": r"std::(function|bind|hash|ref|reference_wrapper)\b",
    "<map>": r"std::(multi)?map\b",
    "<memory>": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this|construct_at)\b",
    "<mutex>": r"std::(mutex|lock_guard|unique_lock|scoped_lock|call_once|once_flag)\b",
    "<optional>": r"std::(optional|nullopt|make_optional)\b",
    "<set>": r"std::(multi)?set\b",
    "<span>": r"std::(span|as_bytes|as_writable_bytes)\b",
    "<string>": r"std::(string|to_string)\b",
    "<string_view>": r"std::string_view\b",
    "<unordered_map>": r"std::unordered_map\b",
    "<utility>": r"std::(move|forward|exchange|swap|pair|declval|as_const|to_underlying)\b",
    "<variant>": r"std::(variant|visit|get_if|holds_alternative|monostate)\b",
    "<vector>": r"std::vector\b",
    "<pybind11/pybind11.h>": r"\bpybind11::",
    '"absl/status/status.h"': r"absl::(Status\b|StatusCode\b|OkStatus\b|\w+Error\()",
    '"absl/status/statusor.h"': r"absl::StatusOr\b",
    '"absl/time/time.h"': r"absl::(Time|Duration|Now|\w*seconds|InfiniteDuration|ZeroDuration|ToInt64\w+)\b",
    '"absl/types/span.h"': r"absl::(Span|MakeSpan|MakeConstSpan)\b",
}
# Headers that the standard or Abseil has give what another one is for.
GIVEN_BY = {
    "<cstddef>": {"<cstring>", "<cstdlib>", "<cstdio>", "<array>", "<string>", "<vector>", "<span>"},
    "<string_view>": {"<string>"},
    "<string>": {"<sstream>"},
    '"absl/status/status.h"': {'"absl/status/statusor.h"'},
}

_INCLUDE = re.compile(r'\s*#\s*include\s*([<"][^>"]+[>"])')


def _included(tree, path, seen=None):
    """What the file includes, itself or through our own headers."""
    seen = set() if seen is None else seen
    found = set()
    for line in tree.code_lines(path):
        match = _INCLUDE.match(line)
        if not match:
            continue
        found.add(match.group(1))
        name = match.group(1)[1:-1]
        ours = name if name in tree.paths else f"api/{name}"
        if ours in tree.paths and ours not in seen:
            seen.add(ours)
            found |= _included(tree, ours, seen)
    return found


def names_what_it_uses(tree):
    """A source includes what it uses, itself or by a header of ours, though a precompiled header has it."""
    precompiled = set()
    for path in PRECOMPILED:
        if path in tree.paths:
            precompiled |= _included(tree, path)
    for header in sorted(precompiled - set(USES)):
        yield Breach(PRECOMPILED[0], 1, f"{header} has no row in tests/tidy/precompiled.py")
    for path in tree.sources(ROOMS):
        if path in PRECOMPILED:
            continue
        included = _included(tree, path)
        for header, use in USES.items():
            if header in included or GIVEN_BY.get(header, set()) & included:
                continue
            for number, line in enumerate(tree.code_lines(path), 1):
                if re.search(use, line):
                    yield Breach(path, number, f"uses what {header} is for, and does not include it")
                    break
