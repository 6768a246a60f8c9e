"""Pages of policies and of what they decided."""

from runs.views import policy
from workspaces.access import Kind, Permission
from workspaces.pages import page

GET_AND_POST = ("GET", "POST")

urlpatterns = [
    page("policies/", policy.policy_list, name="policy-list", needs=Permission.VIEW, kind=Kind.POLICY),
    page("policies/new/", policy.policy_new, name="policy-new", needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY, methods=GET_AND_POST),
    page("policies/<str:policy>/", policy.policy, name="policy", needs=Permission.VIEW, kind=Kind.POLICY),
    page(
        "policies/<str:policy>/propose/",
        policy.policy_propose,
        name="policy-propose",
        needs=Permission.PROPOSE_POLICY,
        kind=Kind.POLICY,
        methods=GET_AND_POST,
    ),
    page(
        "policies/<str:policy>/versions/<str:number>/",
        policy.policy_version,
        name="policy-version",
        needs=Permission.VIEW,
        kind=Kind.POLICY,
    ),
    page(
        "policies/<str:policy>/decide/",
        policy.policy_decide,
        name="policy-decide",
        needs=Permission.LAUNCH_RUN,
        kind=Kind.POLICY,
        methods=GET_AND_POST,
    ),
    page(
        "policies/<str:policy>/pause/",
        policy.policy_pause,
        name="policy-pause",
        needs=Permission.PROPOSE_POLICY,
        kind=Kind.POLICY,
        methods=GET_AND_POST,
    ),
    page(
        "policies/<str:policy>/resume/",
        policy.policy_resume,
        name="policy-resume",
        needs=Permission.APPROVE,
        kind=Kind.POLICY,
        methods=GET_AND_POST,
    ),
    page(
        "policies/<str:policy>/retire/",
        policy.policy_retire,
        name="policy-retire",
        needs=Permission.APPROVE,
        kind=Kind.POLICY,
        methods=GET_AND_POST,
    ),
    page("decisions/<str:decision>/", policy.decision, name="decision", needs=Permission.VIEW, kind=Kind.POLICY),
]
