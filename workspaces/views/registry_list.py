"""What the lists of the registry read from the address."""

from workspaces.pages import PageRequest


def list_query(request: PageRequest) -> tuple[str, str]:
    """The text to look for and the place to go on from."""
    return request.GET.get("q", "").strip()[:200], request.GET.get("after", "")[:300]
