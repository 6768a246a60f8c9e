"""What an expression may be, as far as its text tells: its length, what it calls, and no loop within a loop. Pure.

CEL always ends, but macros within macros multiply: sixty items three deep are 216,000 steps. The process that evaluates is killed all the same.
"""

import re
from collections.abc import Collection

MOST_BYTES = 1024
MACROS = frozenset({"all", "exists", "exists_one", "map", "filter"})
CALLS = frozenset({
    "size", "has", "int", "uint", "double", "string", "bool", "timestamp", "duration", "contains", "startsWith", "endsWith",
    "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds",
})  # fmt: skip
# What stands around it, by name: the facts of the decision.
VARIABLES = (
    "at", "cause", "of", "acted", "failures", "last_acted_at", "under_way", "spent_gpu_ms", "spent_week_gpu_ms", "left_gpu_ms", "gpu_ms_each",
    "waiting_runs", "direction", "target", "best", "results", "candidate", "standing", "datasets", "artifacts", "missing",
)  # fmt: skip
_TOKEN = re.compile(
    # In a raw text a backslash is a backslash: read otherwise, it would hide what stands behind the text.
    r"""(?P<raw>(?:[rR][bB]?|[bB][rR])(?:'''.*?'''|\"\"\".*?\"\"\"|'[^'\n]*'|"[^"\n]*"))"""
    r"""|(?P<text>[bB]?(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))|(?P<note>//[^\n]*)"""
    r"""|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>[().\[\]{}])""",
    re.DOTALL,
)


class BadExpression(ValueError):  # an answer for people
    """An expression that no policy may have; the message is a sentence."""


def check_text(source: str) -> frozenset[str]:
    """Names that its macros bind. Raises BadExpression."""
    if not source.strip():
        raise BadExpression("An expression is needed, such as best < 0.9 && results.size() >= 3.")
    if len(source.encode()) > MOST_BYTES:
        raise BadExpression(f"An expression may have {MOST_BYTES:,} bytes; this one has {len(source.encode()):,}.")
    tokens = [match.group() for match in _TOKEN.finditer(source) if match.lastgroup in ("name", "sign")]
    bound, open_macros = set(), []
    for place, token in enumerate(tokens):
        if token == "(":  # noqa: S105  # a sign, not a password
            is_macro = place > 1 and tokens[place - 1] in MACROS and tokens[place - 2] == "."
            open_macros.append(is_macro)
            if sum(open_macros) > 1:
                raise BadExpression(f"{tokens[place - 1]} stands within another of {', '.join(sorted(MACROS))}; one may not hold another.")
            if is_macro and place + 1 < len(tokens):
                bound.add(tokens[place + 1])
        elif token == ")" and open_macros:  # noqa: S105  # as above
            open_macros.pop()
    return frozenset(bound)


def check_names(calls: Collection[str], variables: Collection[str], bound: Collection[str]) -> None:
    """What the parser says that it calls and reads. Raises BadExpression."""
    strange = sorted(call for call in calls if call[:1].isalpha() and call not in CALLS)
    if strange:
        raise BadExpression(f"{', '.join(strange)} cannot be called here; what can: {', '.join(sorted(CALLS))}.")
    unknown = sorted(set(variables) - set(VARIABLES) - set(bound))
    if unknown:
        raise BadExpression(f"{', '.join(unknown)} is not known here; what is: {', '.join(VARIABLES)}.")
