"""What the documents name is there: files in backquotes, pages that they lead to."""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])
FOLDERS = "labsite|workspaces|runs|templates|static|tests|docs"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(CHECKOUT).as_posix())
def test_files_and_links_of_a_document_are_there(document: Path) -> None:
    text = document.read_text()
    files = re.findall(rf"`((?:{FOLDERS})/[\w./*-]+(?:\.\w+|/))`", text)
    gone = [name for name in files if not list(CHECKOUT.glob(name.rstrip("/")))]
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    broken = [link for link in links if link and "://" not in link and not (document.parent / link).exists()]
    assert (gone, broken) == ([], [])
