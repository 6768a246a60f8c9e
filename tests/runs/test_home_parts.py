"""What the home page says of data, memory, pools and changes; with hostile text, with nothing, and to readers whose role is about less."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs.commands.memory import Said, withdraw_memory, write_memory
from runs.models import Run
from runs.queries.home_changes import BY_VERB, recent_changes
from runs.queries.home_growth import growing
from runs.queries.home_memory import newest_memory
from runs.queries.utilisation import open_pools, pool_uses
from tests.factories import make_member, make_workspace
from tests.factories_pages import HOSTILE, RTL, add_attempt, add_series, client_of, copy_runs, set_run
from tests.factories_registry import TABLE
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, command
from workspaces.commands.blob import keep_blobs, receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.limit import set_limit
from workspaces.commands.live_dataset import cut_window, make_live
from workspaces.commands.member import change_member
from workspaces.models import Dataset, DatasetPiece, Limit, Membership, Unit
from workspaces.verbs import Verb


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@command(Verb.DATASET_CHANGED, needs=Permission.IMPORT_DATA, kind=Kind.DATASET)
def add_piece(event: Draft, /, *, actor: Actor, dataset: Dataset, number: int, records: int, **values: Any) -> None:
    file = receive_file("file", [f"piece {number}".encode()])
    piece = DatasetPiece(
        dataset=dataset, number=number, path=f"{number}.txt", records=records, made_by_run_id=dataset.pk,
        blob=keep_blobs(event, [file])[file.sha256], **values,
    )  # fmt: skip
    piece.save()
    event.created(piece)


def home(laboratory: Laboratory, actor: Actor | None = None) -> str:
    answer = client_of(actor or laboratory.owner).get("/workspaces/lab/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_live_dataset_says_what_came_since_and_what_waits(laboratory: Laboratory) -> None:
    now = timezone.now()
    with laboratory.opened():
        games = make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="games", name=f"Games {RTL}"))
        add_piece(actor=laboratory.owner, dataset=games, number=1, records=40, created_at=now - timedelta(days=3))
        cut_window(actor=laboratory.owner, dataset=games)
        add_piece(actor=laboratory.owner, dataset=games, number=2, records=12)
        (entry,) = growing(now - timedelta(days=1), now=timezone.now(), zone="Europe/Berlin")
        assert (entry.records, entry.fresh, entry.windows, entry.waiting, entry.news) == (52, 12, 1, 12, "+12")
        assert entry.step == "day"
        assert [value for _, value, _ in entry.bars] == [40, 0, 0, 12]
        (later,) = growing(timezone.now(), now=timezone.now(), zone="Europe/Berlin")
        assert later.news == "nothing new"
    page = home(laboratory)
    assert "52 records" in page
    assert "12 in no window yet" in page
    assert "/workspaces/lab/datasets/games/" in page


def test_a_dataset_of_several_versions_grows_too(laboratory: Laboratory) -> None:
    with laboratory.opened():
        assert growing(timezone.now(), now=timezone.now(), zone="UTC") == [], "one version alone shows no growth"
        before = timezone.now()
        file = receive_file("table.csv", [TABLE, b"5,6\n"])
        import_dataset_version(actor=laboratory.owner, dataset=Dataset.objects.get(), role="train", files=[file])
        (entry,) = growing(before, now=timezone.now(), zone="UTC")
        assert (entry.version, entry.news) == (2, "1 new version")


def test_the_newest_that_was_learnt_stands_on_home_with_how_far_it_may_be_trusted(laboratory: Laboratory) -> None:
    with laboratory.opened():
        for number in range(4):
            write_memory(actor=laboratory.owner, said=Said("finding", "lessons", f"lesson {number} {HOSTILE}"[:200]))
        assert [entry.title[:8] for entry in newest_memory()] == ["lesson 3", "lesson 2", "lesson 1"]
        withdraw_memory(actor=laboratory.owner, entry=newest_memory()[0], reason="It was wrong.")
        assert [entry.title[:8] for entry in newest_memory()] == ["lesson 2", "lesson 1", "lesson 0"]
        (first, *_) = newest_memory()
    page = home(laboratory)
    assert "Memory writes" in page
    assert "unreviewed" in page
    assert f"/workspaces/lab/memory/{first.public_id}/" in page
    assert "<script>alert" not in page


def sampled(laboratory: Laboratory, *, has_ended: bool = False, **series: list[float]) -> None:
    """A run under way, or one that was, with what its launcher has measured."""
    now = timezone.now()
    run = launch(laboratory)
    add_attempt(actor=laboratory.owner, run=run, status="ended" if has_ended else "running")
    values = {"status": "succeeded", "ended_at": now} if has_ended else {"status": "running"}
    set_run(actor=laboratory.owner, run=run, started_at=now, **values)
    for key, measured in series.items():
        add_series(run, f"system/{key}", measured)


def test_utilisation_is_the_sum_over_the_runs_under_way(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sampled(laboratory, cpu_percent=[10, 150], memory_bytes=[5e8], gpu_0_percent=[20], gpu_1_percent=[60], gpu_0_memory_bytes=[1e9])
        sampled(laboratory, cpu_percent=[50], memory_bytes=[1e9], gpu_0_percent=[30])
        sampled(laboratory)
        sampled(laboratory, has_ended=True, cpu_percent=[100], memory_bytes=[1e9])
        (use,) = pool_uses(open_pools(4))
        assert (use.taken, use.running, use.measured) == (3, 3, 2)
        assert use.cores == 2.0
        assert use.memory_bytes == 1_500_000_000
        assert use.gpu_percent == 42.5  # of GPU 0 they say 25 on the average, of GPU 1 60
    page = home(laboratory)
    assert "CPU 2.0 cores · memory 1.5 GB · GPU 42 %" in page
    assert "measured of 2 of 3 runs" in page


def test_what_nobody_measured_is_said_so_and_never_0(laboratory: Laboratory) -> None:
    assert "nothing runs" in home(laboratory)
    with laboratory.opened():
        sampled(laboratory, cpu_percent=[float("inf")])
        (use,) = pool_uses(open_pools(4))
        assert (use.cores, use.memory_bytes, use.gpu_percent) == (None, None, None)
    assert "CPU not measured · memory not measured · GPU not measured" in home(laboratory)


def test_an_idle_process_is_measured(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sampled(laboratory, cpu_percent=[0.0], memory_bytes=[4096])
    assert "CPU under 0.1 cores · memory 4.1 kB · GPU not measured" in home(laboratory)


def test_changes_say_what_changed_and_runs_do_not_drown_them(laboratory: Laboratory) -> None:
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=120 * HOUR, mode=Limit.Mode.STOP, reason="more to do"
        )
        for _ in range(3):
            launch(laboratory)
        copy_runs(actor=laboratory.owner, pattern=Run.objects.all()[0], count=30)
        changes = recent_changes(timezone.now() - timedelta(days=1), zone="UTC", may_see=lambda kind: True)
    assert changes[0].label == "Budget"
    assert changes[0].changes == ["amount 100 GPU-hours → 120 GPU-hours"]
    assert changes[0].line.reason == "more to do"
    assert len({change.label for change in changes}) == len(changes), "each group stands once"
    page = home(laboratory)
    assert "amount 100 GPU-hours → 120 GPU-hours" in page
    assert " launched run-" not in page


def test_what_every_run_does_is_no_change() -> None:
    routine = {"launch.admitted", "run.ended", "attempt.started", "attempt.running", "attempt.ended", "artifact.stored", "access.denied"}
    assert not routine & set(BY_VERB)
    assert {"limit.set", "member.added", "dataset.window_cut", "launch.refused"} <= set(BY_VERB)


def test_a_role_narrowed_to_other_kinds_sees_less(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sampled(laboratory, cpu_percent=[100])
        set_limit(actor=laboratory.owner, unit=Unit.RUNS, window=Limit.Window.NOW, amount=7, mode=Limit.Mode.STOP, reason="told")
        ada = make_member(laboratory.workspace, "viewer", "ada")
    assert "In use now" in home(laboratory, ada)
    assert "amount" in home(laboratory, ada)
    with laboratory.opened():
        member = Membership.objects.get(user=ada.user)
        change_member(actor=laboratory.owner, member=member.public_id, role="viewer", kinds=["run"])
    page = home(laboratory, ada)
    assert 'id="pools" hidden' in page
    assert "Budget</span>" not in page, "nor what changed of it"


def test_an_empty_workspace_says_what_is_missing_and_shows_no_empty_cards(db: None) -> None:
    _, owner = make_workspace("bare")
    page = client_of(owner).get("/workspaces/bare/").content.decode()
    for absent in ("Dataset growth", "Memory writes", "Worth promoting"):
        assert absent not in page
    assert "has no objective yet" in page
