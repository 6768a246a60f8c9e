"""Licences as SPDX expressions (SPDX 3.0, annex B). Pure.

Where nobody knows the licence, that is said with SPDX's own word for it; what is left open is the empty text.
"""

import re
from collections.abc import Collection

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

NOT_KNOWN = "NOASSERTION"
MAX_LENGTH = 200
_SAID = frozenset({"not known", "unknown", "noassertion"})


class BadLicence(ValueError):  # an answer for people
    """No SPDX expression; the message is a sentence with a way out."""


def expression_of(text: str) -> str:
    """The canonical spelling of a licence that a person wrote: `cc-by-4.0` and `CC BY 4.0` are CC-BY-4.0, `unknown` is NOASSERTION, nothing
    stays nothing. Raises BadLicence."""
    bare = " ".join(text.split())
    if not bare:
        return ""
    if bare.lower() in _SAID:
        return NOT_KNOWN
    for spelling in (bare, bare.replace(" ", "-")):
        found = _canonical(spelling)
        if found is not None and len(found) <= MAX_LENGTH:
            return found
    own = re.sub(r"[^A-Za-z0-9.-]+", "-", bare).strip("-.")[:80] or "name"
    raise BadLicence(
        f"{bare[:80]} is no SPDX expression. Write an identifier of spdx.org/licenses such as CC-BY-4.0, LicenseRef-{own} for a licence or "
        "contract that is not listed there, or “not known”."
    )


def is_expression(text: str) -> bool:
    """Is a stored licence one? What was written before licences were checked may be anything."""
    return text == NOT_KNOWN or (bool(text) and _canonical(text) == text)


def is_known(text: str) -> bool:
    """Does a stored licence say which one it is?"""
    return text != NOT_KNOWN and is_expression(text)


def is_allowed(text: str, allowed: Collection[str]) -> bool:
    """May something under this expression be used where only the licences `allowed` may? Of alternatives (OR) one is enough, of what holds together
    (AND) each must be; an exception (WITH) only grants more than its licence does. What is no expression is not allowed."""
    if not is_known(text):
        return False
    known = {_canonical(entry) or entry for entry in allowed}
    tokens = re.findall(r"[()]|[^\s()]+", text)
    tokens.reverse()
    return _alternatives(tokens, known)


def _alternatives(tokens: list[str], allowed: Collection[str]) -> bool:
    found = _together(tokens, allowed)
    while tokens and tokens[-1] == "OR":
        tokens.pop()
        found = _together(tokens, allowed) or found
    return found


def _together(tokens: list[str], allowed: Collection[str]) -> bool:
    found = _one(tokens, allowed)
    while tokens and tokens[-1] == "AND":
        tokens.pop()
        found = _one(tokens, allowed) and found
    return found


def _one(tokens: list[str], allowed: Collection[str]) -> bool:
    token = tokens.pop()
    if token == "(":  # noqa: S105  # a bracket
        found = _alternatives(tokens, allowed)
        tokens.pop()
        return found
    if tokens and tokens[-1] == "WITH":
        tokens.pop()
        return f"{token} WITH {tokens.pop()}" in allowed or token in allowed
    return token in allowed


def address_of(text: str) -> str:
    """Where a single listed licence can be read; empty for anything else."""
    is_single = is_expression(text) and text != NOT_KNOWN and " " not in text and not text.startswith("LicenseRef-")
    return f"https://spdx.org/licenses/{text}" if is_single and not text.endswith("+") else ""


def _canonical(text: str) -> str | None:
    try:
        return str(canonicalize_license_expression(text))
    except InvalidLicenseExpression:
        return None
