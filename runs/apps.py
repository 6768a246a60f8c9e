from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    label = "runs"
    approvals = "runs.approvals"  # kinds of requests (workspaces.asked_kinds)
