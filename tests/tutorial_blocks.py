"""The commands of docs/laboratories.md, as a reader copies them."""

import re

from labsite.embedded.home import CHECKOUT

BLOCK = re.compile(r"^([ ]*)```sh\n(.*?)^[ ]*```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[str]:
    """Each block of commands, in the order of the document; those of one document share their variables."""
    text = (CHECKOUT / "docs" / "laboratories.md").read_text()
    return ["\n".join(line.removeprefix(indent) for line in body.splitlines()) for indent, body in BLOCK.findall(text)]
