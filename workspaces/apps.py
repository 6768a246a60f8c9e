from django.apps import AppConfig


class WorkspacesConfig(AppConfig):
    name = "workspaces"
    label = "workspaces"
    approvals = "workspaces.approvals"  # kinds of requests (workspaces.asked_kinds)

    def ready(self) -> None:
        from workspaces import signins  # noqa: PLC0415  # models can be imported only once the apps are ready

        signins.connect()
