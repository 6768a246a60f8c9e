"""Kinds of requests that need a person and touch no run, a file each (workspaces.asked_kinds); those of runs stand in runs/approvals."""
