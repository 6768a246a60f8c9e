"""API of the ground floor, one file a noun; ROUTES is what the root mounts."""

from workspaces.api.door import Routes

ROUTES: dict[str, Routes] = {}
