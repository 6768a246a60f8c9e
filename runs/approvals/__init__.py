"""Kinds of requests that need a person, a file each: how each shows its evidence, and who carries a decision out (workspaces.asked_kinds)."""
