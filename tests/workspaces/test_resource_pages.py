"""Budget, ledger, pools, objective, approvals and shares: pages and API as people and scripts use them."""

import json
import uuid
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_pages import HOSTILE, client_of
from tests.factories_resources import ask, join, reserve, spoil_balance
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import Refusal
from workspaces.commands.benchmark import create_benchmark
from workspaces.commands.engine import tell_isolations
from workspaces.commands.limit import set_limit
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.forms.resource import PoolForm
from workspaces.models import Approval, AuditEvent, Engine, Limit, Objective, Pool, SiteEvent, Unit, Workspace

pytestmark = pytest.mark.django_db
BASE, API = "/workspaces/lab/", "/api/v1/workspaces/lab/"
HOUR = 3_600_000


@dataclass
class Lab:
    workspace: Workspace
    owner: Actor
    viewer: Client
    client: Client

    def get(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        return answer.content.decode()

    def post(self, path: str, body: Any) -> Any:
        if path.startswith("/api"):
            return self.client.post(path, json.dumps(body), content_type="application/json")
        return self.client.post(path, body)


@pytest.fixture
def lab() -> Lab:
    Engine.objects.create(slug="box", kind=Engine.Kind.LOCAL, slots=8)
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        viewer = join(owner, "viewer", Role.VIEWER)
    return Lab(workspace, owner, client_of(viewer), client_of(owner))


def filled(lab: Lab) -> None:
    with scope.open_workspace(lab.workspace.pk):
        set_limit(actor=lab.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=1200 * HOUR, mode=Limit.Mode.STOP)
        set_limit(actor=lab.owner, unit=Unit.RUNS, window=Limit.Window.NOW, amount=48, mode=Limit.Mode.STOP)
        reserve(actor=lab.owner, unit=Unit.GPU_MS, amount=96 * HOUR, run_id=uuid.uuid4(), now=timezone.now())


def test_empty_pages_say_the_next_step_to_those_who_may_take_it(lab: Lab) -> None:
    assert f"{BASE}budget/limits/new/" in lab.get(f"{BASE}budget/")
    assert f"{BASE}pools/new/" in lab.get(f"{BASE}pools/")
    assert f"{BASE}objective/set/" in lab.get(f"{BASE}objective/")
    assert "Nothing waits" in lab.get(f"{BASE}approvals/")
    for path in ("budget/", "pools/", "objective/"):
        page = lab.viewer.get(BASE + path)
        assert page.status_code == 200
        assert "/new/" not in page.content.decode()
        assert "/set/" not in page.content.decode()
    for path in ("budget/limits/new/", "pools/new/", "objective/set/"):
        assert lab.viewer.get(BASE + path).status_code == 403


def test_the_budget_page_says_what_is_left_and_until_when(lab: Lab) -> None:
    filled(lab)
    page = lab.get(f"{BASE}budget/")
    assert "1,104 GPU-hours left until Monday 00:00 Europe/Berlin" in " ".join(page.split())
    assert "48 runs" in page
    assert "96 GPU-hours" in lab.get(f"{BASE}ledger/?unit=gpu_ms")


def test_a_limit_is_set_in_gpu_hours_exact_to_the_millisecond(lab: Lab) -> None:
    form = {"limit": "gpu_ms week", "mode": "stop", "amount": "0.00001", "reason": "tiny"}
    assert lab.post(f"{BASE}budget/limits/new/", form).status_code == 303
    with scope.open_workspace(lab.workspace.pk):
        limit = Limit.objects.get()
        assert limit.amount == 36
    change = f"{BASE}budget/limits/{limit.public_id}/change/"
    assert 'value="0.00001"' in lab.get(change)
    for wrong in ("0.000001", "NaN", "-1", "1e30", "", "a lot"):
        answer = lab.post(change, {"amount": wrong, "reason": "why"})
        assert answer.status_code == 422, wrong
    assert lab.post(change, {"amount": "1200", "reason": ""}).status_code == 422
    assert lab.post(change, {"amount": "1200", "reason": "more money"}).status_code == 303
    with scope.open_workspace(lab.workspace.pk):
        assert Limit.objects.get().amount == 1200 * HOUR
        assert AuditEvent.objects.filter(verb="limit.set").count() == 2
    answer = lab.post(f"{BASE}budget/limits/{limit.public_id}/remove/", {"reason": "gone"})
    assert answer.status_code == 409
    assert "keeps a limit" in answer.content.decode()


def test_the_ledger_downloads_as_csv_and_pages_on_the_api(lab: Lab) -> None:
    filled(lab)
    answer = lab.client.get(f"{BASE}ledger/csv/")
    lines = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[attr-defined]  # a streamed answer
    assert lines[0].startswith("time,unit,window")
    assert len(lines) == 3
    first = lab.client.get(f"{API}ledger?limit=1").json()
    second = lab.client.get(f"{API}ledger?limit=1&cursor={first['next']}").json()
    assert [page["items"][0]["act"] for page in (first, second)] == ["reserve", "fund"]
    assert lab.client.get(f"{API}ledger?cursor=nonsense").status_code == 422


def test_budgets_on_the_api_count_in_whole_numbers(lab: Lab) -> None:
    filled(lab)
    items = {(item["unit"], item["window"]): item for item in lab.client.get(f"{API}budgets").json()["items"]}
    weekly = items["gpu_ms", "week"]
    assert (weekly["amount"], weekly["reserved"], weekly["free"]) == (1200 * HOUR, 96 * HOUR, 1104 * HOUR)
    body = {"unit": "api_micros", "window": "run", "amount": 5_000_000}
    made = lab.post(f"{API}budgets", body)
    assert made.status_code == 201
    assert made.json()["id"].startswith("limit_")
    for wrong in ({"amount": -1}, {"amount": 1.5}, {"amount": True}, {"amount": 2**63}, {"unit": "watts"}, {"mode": "maybe"}, {"more": 1}):
        assert lab.post(f"{API}budgets", {**body, **wrong}).status_code == 422, wrong
    assert lab.post(f"{API}budgets", {**body, "window": "now"}).status_code == 422
    assert lab.viewer.post(f"{API}budgets", json.dumps(body), content_type="application/json").status_code in (401, 403)
    assert lab.client.get(f"{API}budgets/limit_{uuid.uuid4().hex}").status_code == 404


def test_a_pool_is_bound_changed_closed_and_opened(lab: Lab) -> None:
    form = {"engine": "box", "slug": "local", "slots": "4", "isolation": "user", "gpus_per_slot": "0.25", "price": "1.5", "currency": "eur"}
    assert lab.post(f"{BASE}pools/new/", {**form, "slots": "9"}).status_code == 409
    assert lab.post(f"{BASE}pools/new/", form).status_code == 303
    with scope.open_workspace(lab.workspace.pk):
        pool = Pool.objects.get()
        assert (pool.milli_gpu_per_slot, pool.price_micros_per_gpu_hour, pool.currency, pool.is_default) == (250, 1_500_000, "EUR", True)
    page = " ".join(lab.get(f"{BASE}pools/local/").split())
    assert "local can take 4 slots of work" in page
    assert "numeric user of its own" in page
    assert "takes work" in lab.get(f"{BASE}pools/")
    assert lab.post(f"{BASE}pools/new/", {**form, "slug": "lo_cal"}).status_code == 303
    assert lab.post(f"{BASE}pools/new/", {**form, "slug": "lo-cal"}).status_code == 409
    assert lab.post(f"{BASE}pools/local/unbind/", {"reason": "repairs"}).status_code == 303
    assert "local takes no new work" in " ".join(lab.get(f"{BASE}pools/local/").split())
    assert lab.post(f"{BASE}pools/local/open/", {}).status_code == 422, "a reason is asked for"
    assert lab.post(f"{BASE}pools/local/open/", {"reason": "Room again"}).status_code == 303
    with scope.open_workspace(lab.workspace.pk):
        assert Pool.objects.get(slug="local").is_accepting


def test_pools_on_the_api_and_one_default(lab: Lab) -> None:
    body = {"engine": "box", "slug": "first", "slots": 2, "isolation": "none"}
    assert lab.post(f"{API}pools", body).json()["status"] == "ready"
    made = lab.post(f"{API}pools", {**body, "slug": "second", "is_default": True})
    assert made.status_code == 201
    assert [(item["slug"], item["is_default"]) for item in lab.client.get(f"{API}pools").json()["items"]] == [
        ("second", True),
        ("first", False),
    ]
    changed = lab.client.patch(f"{API}pools/pool_first", json.dumps({"slots": 3}), content_type="application/json")
    assert (changed.status_code, changed.json()["slots"]) == (200, 3)
    assert lab.post(f"{API}pools", {**body, "slug": "third", "engine": "none-such"}).status_code == 422
    with scope.open_workspace(lab.workspace.pk):
        assert bind_pool(actor=lab.owner, engine="box", slug="third", slots=1, isolation="none").is_default is False
        assert change_pool(actor=lab.owner, pool=Pool.objects.get(slug="third"), is_default=True).is_default
        assert Pool.objects.filter(is_default=True).count() == 1


def test_a_pool_is_closed_and_opened_with_a_reason_whatever_door_is_taken(lab: Lab) -> None:
    lab.post(f"{API}pools", {"engine": "box", "slug": "first", "slots": 2, "isolation": "none", "is_default": True})
    lab.post(f"{API}pools", {"engine": "box", "slug": "second", "slots": 2, "isolation": "none"})

    def say(**body: object) -> Any:
        return lab.client.patch(f"{API}pools/second", json.dumps(body), content_type="application/json")

    for is_open in (False, True):
        refused = say(is_accepting=is_open)
        assert (refused.status_code, "Say why" in refused.content.decode()) == (422, True)
        assert say(is_accepting=is_open, reason=" moved ").status_code == 200
        with scope.open_workspace(lab.workspace.pk):
            pool = Pool.objects.get(slug="second")
            assert (pool.is_accepting, pool.closed_reason) == (is_open, "" if is_open else "moved")


def test_a_second_pool_is_shown_beside_the_first(lab: Lab) -> None:
    form = {"engine": "box", "slots": "4", "isolation": "user", "gpus_per_slot": "0.25", "price": "1.5", "currency": "EUR"}
    for slug, slots in (("local", "4"), ("night", "2")):
        assert lab.post(f"{BASE}pools/new/", {**form, "slug": slug, "slots": slots}).status_code == 303
    page = lab.get(f"{BASE}pools/")
    for slug in ("local", "night"):
        assert f'href="{BASE}pools/{slug}/"' in page
    assert "night can take 2 slots of work" in " ".join(lab.get(f"{BASE}pools/night/").split())


def test_the_objective_is_followed_by_the_next_and_stays_on_record(lab: Lab) -> None:
    with scope.open_workspace(lab.workspace.pk):
        create_benchmark(actor=lab.owner, slug="elo")
    form = {"statement": HOSTILE, "benchmark": "elo", "target": "1650.5", "due_on": "2027-01-31"}
    assert lab.post(f"{BASE}objective/set/", form).status_code == 303
    page = lab.get(f"{BASE}objective/")
    assert "<script>alert" not in page
    assert "31 January 2027" in page
    assert lab.post(f"{BASE}objective/set/", {**form, "target": "nan"}).status_code == 422
    assert lab.post(f"{API}objectives", {"statement": "Win more", "target": 2}).status_code == 422  # a target is reached on a benchmark
    assert lab.post(f"{API}objectives", {"statement": "Win more", "benchmark": "none"}).status_code == 404
    assert lab.post(f"{API}objectives", {"statement": "Win more", "benchmark": "bench_elo", "target": 2}).status_code == 201
    assert [item["status"] for item in lab.client.get(f"{API}objectives").json()["items"]] == ["current", "earlier"]
    with scope.open_workspace(lab.workspace.pk):
        assert Objective.objects.filter(is_current=True).count() == 1


def test_a_request_shows_exactly_what_is_asked_and_offers_the_decision_to_others_only(lab: Lab) -> None:
    with scope.open_workspace(lab.workspace.pk):
        researcher = join(lab.owner, "researcher")
        approval = ask(actor=researcher, content={"asks": f"Launch {HOSTILE}", "limits": {"gpu_ms": 24 * HOUR}})
    page = lab.get(f"{BASE}approvals/{approval.public_id}/")
    assert "24 GPU-hours" in page
    assert "<script>alert" not in page
    assert f'value="{approval.content_hash}"' in page
    assert 'value="approve"' in page
    for client in (lab.viewer, client_of(researcher)):
        assert 'value="approve"' not in client.get(f"{BASE}approvals/{approval.public_id}/").content.decode()
    assert "1 request waits" in lab.get(f"{BASE}approvals/")
    body = lab.client.get(f"{API}approvals/{approval.public_id}").json()
    assert (body["status"], body["content"]["limits"]["gpu_ms"]) == (Approval.Status.PENDING, 24 * HOUR)
    assert lab.client.get(f"{API}approvals?status=refused").json() == {"items": [], "next": None}
    assert lab.client.get(f"{API}shares").json() == {"items": [], "next": None}


def test_recount_leaves_with_a_fault_where_a_balance_is_not_its_entries(lab: Lab) -> None:
    filled(lab)
    out = StringIO()
    call_command("recount", stdout=out)
    assert "lab: 2 entries — everything adds up" in out.getvalue()
    with scope.open_workspace(lab.workspace.pk):
        spoil_balance(actor=lab.owner)
    out = StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("recount", "--workspace", "lab", "--json", stdout=out)
    assert left.value.code == 1
    assert json.loads(out.getvalue())["ledgers"][0]["wrong"][0]["balance"] == 5


def test_a_pool_promises_only_what_its_engine_was_found_to_keep(lab: Lab) -> None:
    Engine.objects.filter(slug="box").update(isolations=["namespace", "none"])
    with scope.open_workspace(lab.workspace.pk):
        with pytest.raises(Refusal, match=r"box offers namespaces of the kernel or no isolation, and not own user id for each attempt"):
            bind_pool(actor=lab.owner, engine="box", slug="strict", slots=1, isolation="user")
        pool = bind_pool(actor=lab.owner, engine="box", slug="open", slots=1, isolation="none")
        with pytest.raises(Refusal, match="box offers"):
            change_pool(actor=lab.owner, pool=pool, isolation="user")
        Engine.objects.filter(slug="box").update(isolations=["namespace"])
        assert change_pool(actor=lab.owner, pool=pool, slots=2).slots == 2  # what it had it keeps until somebody changes it
        form = PoolForm(initial=PoolForm.values_of(pool), engines=[Engine.objects.get(slug="box")])
        assert [value for value, _ in form.fields["isolation"].choices] == ["namespace", "none"]  # type: ignore[attr-defined]  # a ChoiceField


def test_what_the_machine_offers_is_kept_once_and_told_when_it_changes() -> None:
    Engine.objects.create(slug="local", kind=Engine.Kind.LOCAL, slots=2)
    system = Actor.system(job_id="first_start")
    for offered in (["user", "none"], ["user", "none"], ["none"]):
        tell_isolations(actor=system, isolations=offered)
        assert Engine.objects.get(slug="local").isolations == offered
    assert SiteEvent.objects.filter(verb="engine.changed").count() == 2
