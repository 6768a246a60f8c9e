"""The person with whom a lineage begins: people belong to the site, so that only whoever has a part in the open workspace is found."""

from runs.queries.lineage import Node, Way, reach
from runs.queries.lineage_edges import NodeKind
from workspaces.models import NotFound, User
from workspaces.queries.member import people


def find_person(username: str) -> Node:
    """Whoever may enter, or has left and did something here. Raises NotFound for everyone else, as for nobody."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise NotFound("person")
    node = Node(NodeKind.PERSON, user.pk)
    if not people([user.pk]) and reach([node], Way.DOWN, most=1).is_whole:
        raise NotFound("person")
    return node
