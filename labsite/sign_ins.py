"""The first people's sign-ins, as the first start says them: once, in a table for the person who started it. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

WORDS = {"create_workspace": "makes workspaces", "site_operator": "runs the installation", "site_auditor": "reads every audit"}
MEMBERS = {"researcher": "launches runs in the example laboratories", "approver": "decides on requests there"}


def sign_in_table(people: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table: who, password, what for. `people` as `first_start --json` writes them; nothing for nobody."""
    rows = [(str(person["username"]), person["password"] or "the one that you chose", _words(person)) for person in people]
    if not rows:
        return
    table = [("user", "password", "what for"), *rows]
    names, passwords = (max(len(row[column]) for row in table) + 3 for column in (0, 1))
    yield from (f"{name:{names}}{password:{passwords}}{words}" for name, password, words in table)
    yield "These passwords are shown this once. Each person changes theirs after signing in, under their own name at the top right."


def _words(person: dict[str, Any]) -> str:
    roles = [WORDS.get(role, str(role)) for role in person["site_roles"]]
    return ", ".join(roles) or MEMBERS.get(str(person["username"]), "a person")
