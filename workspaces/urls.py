"""Pages of the ground floor, each with its scope, permission and kind."""

from workspaces.access import Kind, Permission
from workspaces.pages import page, site_page
from workspaces.views import agent, event, invitation, member, preferences, token, workspace

urlpatterns = [
    site_page("", workspace.start, name="start", needs="signed_in"),
    site_page("workspaces/", workspace.workspace_list, name="workspace-list", needs="signed_in"),
    site_page("workspaces/new/", workspace.workspace_create, name="workspace-create", needs="create_workspace", methods=("GET", "POST")),
    site_page("preferences/", preferences.preferences, name="preferences", needs="signed_in", methods=("GET", "POST")),
    page("setup/", workspace.workspace_setup, name="workspace-setup", needs=Permission.VIEW, kind=Kind.WORKSPACE),
    page("settings/", workspace.workspace_settings, name="workspace-settings", needs=Permission.VIEW, kind=Kind.WORKSPACE),
    page(
        "settings/activate/",
        workspace.workspace_activate,
        name="workspace-activate",
        needs=Permission.MANAGE_WORKSPACE,
        kind=Kind.WORKSPACE,
        methods=("POST",),
    ),
    page(
        "settings/<str:step>/",
        workspace.workspace_configure,
        name="workspace-configure",
        needs=Permission.MANAGE_WORKSPACE,
        kind=Kind.WORKSPACE,
        methods=("POST",),
    ),
    page("members/", member.member_list, name="member-list", needs=Permission.VIEW, kind=Kind.MEMBER),
    page(
        "members/add/", member.member_add, name="member-add", needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER, methods=("GET", "POST")
    ),
    page("members/leave/", member.member_leave, name="member-leave", needs=Permission.VIEW, methods=("POST",)),
    page("members/<str:member>/", member.member, name="member", needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER),
    page(
        "members/<str:member>/change/",
        member.member_change,
        name="member-change",
        needs=Permission.MANAGE_MEMBERS,
        kind=Kind.MEMBER,
        methods=("POST",),
    ),
    page(
        "members/<str:member>/remove/",
        member.member_remove,
        name="member-remove",
        needs=Permission.MANAGE_MEMBERS,
        kind=Kind.MEMBER,
        methods=("POST",),
    ),
    page(
        "invitations/<str:invitation>/revoke/",
        invitation.invitation_revoke,
        name="invitation-revoke",
        needs=Permission.MANAGE_MEMBERS,
        kind=Kind.MEMBER,
        methods=("POST",),
    ),
    page(
        "invitations/<str:invitation>/<str:secret>/",
        invitation.invitation_accept,
        name="invitation-accept",
        needs=None,
        public_reason="whoever holds the link may become a member; its secret is checked",
        methods=("GET", "POST"),
    ),
    page("tokens/", token.token_list, name="token-list", needs=Permission.VIEW),
    page("tokens/new/", token.token_add, name="token-add", needs=Permission.VIEW, methods=("GET", "POST")),
    page("tokens/<str:token>/revoke/", token.token_revoke, name="token-revoke", needs=Permission.VIEW, methods=("POST",)),
    page("agents/", agent.agent_list, name="agent-list", needs=Permission.VIEW, kind=Kind.AGENT),
    page("agents/new/", agent.agent_new, name="agent-new", needs=Permission.EDIT_REGISTRY, kind=Kind.AGENT, methods=("GET", "POST")),
    page("agents/<str:agent>/", agent.agent, name="agent", needs=Permission.VIEW, kind=Kind.AGENT),
    page(
        "agents/<str:agent>/edit/",
        agent.agent_edit,
        name="agent-edit",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.AGENT,
        methods=("GET", "POST"),
    ),
    page(
        "agents/<str:agent>/versions/new/",
        agent.agent_version_new,
        name="agent-version-new",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.AGENT,
        methods=("GET", "POST"),
    ),
    page("audit/", event.event_list, name="event-list", needs=Permission.VIEW_AUDIT, kind=Kind.AUDIT),
    page("audit/csv/", event.event_list_csv, name="event-list-csv", needs=Permission.VIEW_AUDIT, kind=Kind.AUDIT),
    page("audit/verify/", event.event_verify, name="event-verify", needs=Permission.VIEW_AUDIT, kind=Kind.AUDIT),
    page("audit/<str:event>/", event.event, name="event", needs=Permission.VIEW_AUDIT, kind=Kind.AUDIT),
]
