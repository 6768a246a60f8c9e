"""Licences as SPDX expressions (SPDX 3.0, annex B). Pure.

Where nobody knows the licence, that is said with SPDX's own word for it; what is left open is the empty text.
"""

import re

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


def address_of(text: str) -> str:
    """Where a single listed licence can be read; empty for anything else."""
    is_single = is_expression(text) and text != NOT_KNOWN and " " not in text and not text.startswith("LicenseRef-")
    return f"https://spdx.org/licenses/{text}" if is_single and not text.endswith("+") else ""


def _canonical(text: str) -> str | None:
    try:
        return str(canonicalize_license_expression(text))
    except InvalidLicenseExpression:
        return None
