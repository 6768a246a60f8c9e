"""An owner's day: letting someone in, changing what they may do, setting the budget, and making a workspace that can launch."""

import pytest

from tests.browser.conftest import Visit
from tests.factories import make_member, make_user
from tests.factories_runs import make_laboratory
from workspaces.access import Actor
from workspaces.models import Engine, Installation, User, Workspace

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "correct-horse-41-battery"


def test_an_invitation_from_link_to_first_sign_in(visit: Visit) -> None:
    laboratory = make_laboratory()
    owner = visit(laboratory.owner)
    owner.go("/workspaces/lab/members/")
    owner.follow("Let someone in")
    invite = owner.page.locator("form").filter(has=owner.page.get_by_role("button", name="Invite", exact=True))
    invite.get_by_label("E-mail address").fill("ada@example.org")
    invite.get_by_label("Role").select_option("researcher")
    owner.press("Invite")
    link = owner.reads("/invitations/").inner_text().strip()
    owner.shoot("link")

    guest = visit()
    guest.expected = {409, 422}
    guest.go(link[link.index("/workspaces/") :])
    guest.page.get_by_label("User name").fill("ada")
    guest.page.get_by_label("Your name").fill("Ada")
    for weak in ("short", "123456789012345", "password1234"):
        guest.page.get_by_label("Password", exact=True).fill(weak)
        guest.page.get_by_label("Password again").fill(weak)
        guest.press("Make account and accept")
        guest.page.locator("[aria-invalid=true], .errorlist, [role=alert]").first.wait_for()
        assert not User.objects.filter(username="ada").exists(), f"{weak} was taken as a password"
    guest.page.get_by_label("Password", exact=True).fill(PASSWORD)
    guest.page.get_by_label("Password again").fill(PASSWORD)
    guest.press("Make account and accept")
    guest.reads("Sign in to begin")
    guest.sign_in("ada", PASSWORD)  # her one workspace opens by itself
    guest.reads("Raise accuracy")

    again = visit()
    again.expected = {404}
    assert again.go(link[link.index("/workspaces/") :]).status == 404  # it worked once


def test_a_changed_role_holds_from_the_next_request(visit: Visit) -> None:
    laboratory = make_laboratory()
    member = make_member(laboratory.workspace, "researcher", "rosalind")
    theirs, owner = visit(member), visit(laboratory.owner)
    theirs.go("/workspaces/lab/runs/launch/")
    theirs.page.get_by_role("button", name="Launch", exact=True).wait_for()

    owner.go("/workspaces/lab/members/")
    owner.page.get_by_role("row").filter(has_text="rosalind").get_by_role("link", name="researcher").first.click()
    owner.page.get_by_label("Role").select_option("viewer")
    owner.press("Change role")
    owner.page.get_by_role("row").filter(has_text="rosalind").get_by_role("link", name="viewer").first.wait_for()

    theirs.expected = {403}
    assert theirs.go("/workspaces/lab/runs/launch/").status == 403
    theirs.go("/workspaces/lab/")
    assert not theirs.page.get_by_role("link", name="Launch a run").count()


def test_setting_the_budget(visit: Visit) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=100)
    owner = visit(laboratory.owner)
    owner.go("/workspaces/lab/budget/")
    row = owner.page.get_by_role("row").filter(has_text="100 GPU-hours").first
    row.get_by_role("link", name="Change").click()
    owner.page.get_by_label("Amount").fill("250")
    owner.page.get_by_label("Why").fill("the grant came through")
    owner.press("Change limit")
    owner.reads("250 GPU-hours")
    owner.shoot("budget")
    owner.follow("Home", within=owner.page.get_by_role("navigation", name="Pages", exact=True))
    owner.reads("of 250 GPU-hours committed")


def test_a_workspace_step_by_step_until_it_may_launch(visit: Visit) -> None:
    Installation.objects.get_or_create(is_current=True)
    Engine.objects.create(slug="local", kind=Engine.Kind.LOCAL, slots=4)
    owner = visit(Actor.of(make_user("emmy", User.SiteRole.CREATE_WORKSPACE)))
    owner.go("/workspaces/")
    owner.follow("Create workspace")
    owner.page.get_by_label("Name", exact=True).fill("Invariants")
    owner.page.get_by_label("Short name").fill("invariants")
    owner.press("Create workspace")
    owner.reads("steps are left before Invariants can launch")

    def settle(step: str) -> None:
        owner.press("Settle", within=owner.page.locator(f"#{step}"))
        owner.reads("done", within=owner.page.locator(f"#{step}"))

    owner.page.get_by_label("Billing account").fill("acc-7")
    owner.page.get_by_label("Cost centre").fill("cc-7")
    settle("billing")
    owner.page.get_by_label("This workspace is the boundary of a").select_option("team")
    owner.page.get_by_label("Why it is one").fill("One group with one budget.")
    settle("boundary")
    owner.page.get_by_label("Time zone").fill("Europe/Berlin")
    owner.page.get_by_label("The week begins on").select_option("0")
    settle("zone")
    if owner.page.locator("#visibility").get_by_role("button", name="Settle").count():
        owner.page.locator("#visibility").get_by_role("radio").first.check()
        settle("visibility")
    if owner.page.locator("#region").get_by_role("button", name="Settle").count():
        owner.page.get_by_label("Store in which every file lies").select_option("local")
        settle("region")
    owner.shoot("half-way")

    owner.follow("Pools", within=owner.page.locator("#pools"))
    owner.follow("Bind a pool")
    owner.page.get_by_label("Engine").select_option("local")
    owner.page.locator("[name=slug]").fill("local")
    owner.page.get_by_label("Slots").fill("2")
    owner.page.get_by_label("Runs that name no pool go here").check()
    owner.press("Bind pool")
    owner.page.get_by_role("heading", name="local can take").wait_for()
    for limit, amount in (("gpu_ms week", "40"), ("runs now", "2")):
        owner.go("/workspaces/invariants/budget/")
        owner.follow("New limit")
        owner.page.get_by_label("What is limited").select_option(limit)
        owner.page.get_by_label("Amount").fill(amount)
        owner.page.get_by_label("Why").fill("to begin with")
        owner.press("Set limit")
        owner.page.get_by_role("heading", name="Limits").wait_for()
    owner.go("/workspaces/invariants/setup/")
    owner.follow("Objective", within=owner.page.locator("#objective"))
    owner.follow("Set objective")
    owner.page.get_by_label("What the group tries to improve").fill("Find what stays")
    owner.press("Set objective")
    owner.reads("Find what stays")

    owner.go("/workspaces/invariants/setup/")
    owner.press("Open for launches")
    owner.reads("is open for launches")
    owner.shoot("open")
    owner.go("/workspaces/invariants/")
    owner.reads("Find what stays")
    assert Workspace.objects.get(slug="invariants").status == "active"
