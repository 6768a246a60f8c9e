"""Tokens: one workspace, scopes inside the holder's rights, an end, shown once."""

from datetime import timedelta
from io import StringIO
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.factories import make_member, make_user, make_workspace
from tests.factories_people import bearer, make_operator, make_token, signed_in
from workspaces import scope
from workspaces.access import Actor, Kind, Permission, Role, rights_of
from workspaces.audit import Denied, Refusal
from workspaces.commands.member import add_member, create_service_account
from workspaces.commands.token import create_token, revoke_leaked_token, revoke_token
from workspaces.models import IdempotencyKey, Token, TokenUse, User
from workspaces.queries import token as tokens


@pytest.mark.django_db
def test_a_token_opens_its_workspace_and_no_other() -> None:
    workspace, owner = make_workspace()
    make_workspace("other", owner=owner.user)
    _, text = make_token(workspace, owner, "member:read")
    client = bearer(text)
    assert client.get("/api/v1/workspaces/lab/members").status_code == 200
    assert client.get("/api/v1/workspaces/other/members").status_code == 404
    me = client.get("/api/v1/me").json()
    assert [row["slug"] for row in me["workspaces"]] == ["lab"]
    assert me["token"]["scopes"] == ["member:read"]
    assert me["site_roles"] == []


@pytest.mark.django_db
def test_a_read_scope_does_not_write_and_another_noun_is_closed() -> None:
    workspace, owner = make_workspace()
    _, text = make_token(workspace, owner, "member:read")
    make_user("ada")
    assert bearer(text).post("/api/v1/workspaces/lab/members", {"user": "ada", "role": "viewer"}, "application/json").status_code == 403
    assert bearer(text).get("/api/v1/workspaces/lab/benchmarks").status_code == 403
    _, text = make_token(workspace, owner, "member:write")
    assert bearer(text).post("/api/v1/workspaces/lab/members", {"user": "ada", "role": "viewer"}, "application/json").status_code == 201


@pytest.mark.django_db
@pytest.mark.parametrize("scopes", [["run:write"], ["run:read", "everything"], ["run"], [":"], [], ["runs:read"]])
def test_scopes_that_are_none_or_grant_nothing_are_refused(scopes: list[str]) -> None:
    workspace, _ = make_workspace()
    viewer = make_member(workspace, Role.VIEWER)
    with scope.open_workspace(workspace.pk), pytest.raises(Refusal) as refused:
        create_token(actor=viewer, name="x", scopes=scopes)
    assert refused.value.field == "scopes"


@pytest.mark.django_db
@pytest.mark.parametrize("days", [0, -1, 366])
def test_a_token_lasts_one_day_to_a_year(days: int) -> None:
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk), pytest.raises(Refusal, match="1 to 365"):
        create_token(actor=owner, name="x", scopes=["run:read"], days=days)


@pytest.mark.django_db
def test_a_token_makes_no_token() -> None:
    workspace, owner = make_workspace()
    _, text = make_token(workspace, owner, "member:write")
    answer = bearer(text).post("/api/v1/workspaces/lab/tokens", {"name": "more", "scopes": ["run:read"]}, "application/json")
    assert answer.status_code in (403, 409)
    with scope.open_workspace(workspace.pk):
        assert Token.objects.count() == 1


@pytest.mark.django_db
def test_only_an_admin_makes_tokens_for_a_service_account_and_nobody_for_a_person() -> None:
    workspace, owner = make_workspace()
    researcher, ada = make_member(workspace, Role.RESEARCHER), make_member(workspace, Role.VIEWER, "ada")
    with scope.open_workspace(workspace.pk):
        bot = create_service_account(actor=owner, username="bot", display_name="Bot").user
        with pytest.raises(Denied):
            create_token(actor=researcher, name="x", scopes=["run:read"], holder=bot)
        with pytest.raises(Refusal, match="is a person"):
            create_token(actor=owner, name="x", scopes=["run:read"], holder=ada.user)
        token, text = create_token(actor=owner, name="x", scopes=["run:write", "run:read"], holder=bot)
    assert (token.kind, text[:8]) == (Token.Kind.SERVICE, "lab_svc_")


@pytest.mark.django_db
def test_a_service_accounts_token_never_does_more_than_a_researcher() -> None:
    workspace, owner = make_workspace()
    bot = make_user("bot", kind=User.Kind.SERVICE)
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, user=bot, role=Role.RESEARCHER)
        token, text = create_token(actor=owner, name="x", scopes=["member:write", "run:write"], holder=bot)
        parts = tokens.read(text)
        assert parts is not None
        actor = tokens.actor_of_token(parts)
        assert actor is not None
        rights = rights_of(actor, workspace.pk)
    assert rights.allows(Permission.LAUNCH_RUN, Kind.RUN)
    assert not rights.allows(Permission.MANAGE_MEMBERS, Kind.MEMBER)
    assert token.holder_id == bot.pk


@pytest.mark.django_db
def test_a_holder_ends_their_own_an_admin_any_and_a_stranger_none() -> None:
    workspace, owner = make_workspace()
    ada, bob = make_member(workspace, Role.RESEARCHER, "ada"), make_member(workspace, Role.RESEARCHER, "bob")
    first, _ = make_token(workspace, ada, "run:read")
    second, _ = make_token(workspace, ada, "run:read")
    with scope.open_workspace(workspace.pk):
        with pytest.raises(Denied):
            revoke_token(actor=bob, token=first.public_id)
        revoke_token(actor=ada, token=first.public_id)
        revoke_token(actor=owner, token=second.public_id)
        assert not Token.objects.filter(revoked_at=None).exists()


@pytest.mark.django_db
def test_a_site_operator_ends_a_leaked_token_and_a_member_without_the_role_does_not() -> None:
    workspace, owner = make_workspace()
    token, text = make_token(workspace, owner, "member:read")
    with scope.open_workspace(workspace.pk):
        with pytest.raises(Denied):
            revoke_leaked_token(actor=owner, token=token.public_id)
        revoke_leaked_token(actor=make_operator(), token=token.public_id)
    assert bearer(text).get("/api/v1/workspaces/lab/members").status_code == 401


@pytest.mark.django_db
def test_expired_forged_and_mangled_tokens_are_one_401() -> None:
    workspace, owner = make_workspace()
    token, text = make_token(workspace, owner, "member:read")
    forged = tokens.spell("pat", workspace.pk, token.pk, "0" * 64)
    for wrong in (forged, text[:-1], text.replace("lab_pat", "lab_svc"), "Bearer", "lab_pat_x_y_z", "é" * 40):
        answer = Client().get("/api/v1/workspaces/lab/members", headers={"authorization": f"Bearer {wrong}"})
        assert (wrong, answer.status_code) == (wrong, 401)
    with mock.patch("workspaces.queries.token.timezone.now", return_value=timezone.now() + timedelta(days=2)):
        assert bearer(text).get("/api/v1/workspaces/lab/members").status_code == 401


@pytest.mark.django_db
def test_use_is_noted_once_a_minute() -> None:
    workspace, owner = make_workspace()
    token, text = make_token(workspace, owner, "member:read")
    for _ in range(3):
        bearer(text).get("/api/v1/workspaces/lab/members")
    with scope.open_workspace(workspace.pk):
        use = TokenUse.objects.get()
        assert (use.token_id, use.address) == (token.pk, "127.0.0.1")
    listed = signed_in(owner).get("/api/v1/workspaces/lab/tokens").json()["items"]
    assert listed[0]["used_at"] is not None


@pytest.mark.django_db
def test_the_text_is_in_one_answer_and_nowhere_else() -> None:
    workspace, owner = make_workspace()
    client = signed_in(owner)
    body = {"name": "nightly", "scopes": ["run:read"]}
    made = client.post("/api/v1/workspaces/lab/tokens", body, "application/json", headers={"idempotency-key": "k1"})
    assert made.status_code == 201
    text = made.json()["token"]
    again = client.post("/api/v1/workspaces/lab/tokens", body, "application/json", headers={"idempotency-key": "k1"})
    assert again.status_code == 409
    secret = text.split("_")[3]
    pages = client.get("/workspaces/lab/tokens/").content.decode() + client.get("/api/v1/workspaces/lab/tokens").content.decode()
    with scope.open_workspace(workspace.pk):
        kept = str(list(IdempotencyKey.objects.values())) + str(list(Token.objects.values()))
        assert Token.objects.count() == 1
    assert secret not in pages + kept + again.content.decode()


@pytest.mark.django_db
def test_unknown_keys_of_a_body_are_refused() -> None:
    _, owner = make_workspace()
    body = {"name": "x", "scopes": ["run:read"], "kind": "run", "run_id": "0" * 32}
    assert signed_in(owner).post("/api/v1/workspaces/lab/tokens", body, "application/json").status_code == 422


@pytest.mark.django_db
def test_the_page_makes_a_token_and_shows_it_once() -> None:
    workspace, owner = make_workspace()
    client = signed_in(owner)
    made = client.post("/workspaces/lab/tokens/new/", {"name": "web", "holder": "lab-owner", "days": "5", "reads": ["run", "dataset"]})
    assert made.status_code == 201
    assert "lab_pat_" in made.content.decode()
    assert client.post("/workspaces/lab/tokens/new/", {"name": "web", "holder": "lab-owner", "days": "5"}).status_code == 409
    with scope.open_workspace(workspace.pk):
        assert Token.objects.get().scopes == ["dataset:read", "run:read"]


@pytest.mark.django_db
def test_the_command_line_prints_the_token_alone_on_the_last_line() -> None:
    workspace, _ = make_workspace()
    ada = make_member(workspace, Role.RESEARCHER, "ada")
    out = StringIO()
    options = {"actor": "lab-owner", "user": "ada", "workspace": "ws_lab", "scopes": "run:read,run:write", "days": 7}
    call_command("create_token", stdout=out, **options)
    assert bearer(out.getvalue().splitlines()[-1]).get("/api/v1/me").json()["user"] == "ada"
    with pytest.raises(CommandError, match="right"):
        call_command("create_token", stdout=out, **(options | {"actor": "ada", "user": "lab-owner"}))
    with pytest.raises(CommandError, match="no workspace"):
        call_command("create_token", stdout=out, **(options | {"workspace": "none"}))
    assert ada.user is not None
    assert Actor.of(ada.user).kind == "person"
