"""What an event changed, as people read it: local time, units, and the exact value beside it."""

from workspaces.ids import uuid7
from workspaces.models import AuditEvent
from workspaces.queries.change_words import Change, changes_of


def changes(changed: object, zone: str = "Europe/Berlin", **event: str) -> list[Change]:
    return changes_of(AuditEvent(workspace_id=uuid7(), **event), changed, zone)


def test_instants_stand_on_the_workspace_clock_with_the_exact_one_beside_them() -> None:
    assert changes({"run": {"ended_at": [None, "2026-11-28T04:59:51.172809Z"]}}) == [
        Change("ended", "", "28 November 2026, 05:59:51 Europe/Berlin", "", "2026-11-28T04:59:51.172809Z")
    ]
    assert changes({"ended_at": [None, "soon"]})[0].after == "soon"
    assert changes({"ended_at": [None, "2026-11-28T04:59:51"]}, "Mars/Olympus")[0].after == "2026-11-28T04:59:51"


def test_amounts_have_their_units() -> None:
    fields = {"spent_gpu_ms": [0, 15_187], "peak_memory_bytes": [None, 36_155_392], "cpu_ms": [None, 1500], "wall_seconds": [60, 5400]}
    assert [(change.label, change.before, change.after, change.after_exact) for change in changes(fields)] == [
        ("spent GPU time", "0 GPU-hours", "<0.01 GPU-hours", "15187"),
        ("peak memory", "", "36.2 MB", "36155392"),
        ("CPU time", "", "1.5 s", "1500"),
        ("wall", "1 min", "1 h 30", "5400"),
    ]
    limit = {"subject_type": "limit", "subject_label": "GPU time, a week: hard stop"}
    assert changes({"limit": {"amount": [None, 144_000_000]}}, **limit)[0].after == "40 GPU-hours"
    assert changes({"amount": [None, 144_000_000]})[0].after == "144000000"


def test_what_is_no_change_is_left_out_and_what_people_wrote_stays_as_it_is() -> None:
    assert changes("nothing") == []
    assert changes({"name": "x", "list": [1, 2, 3]}) == []
    assert changes({"name": ["", "<b>a_b</b>"], "is_open": [True, False]}) == [
        Change("name", "", "<b>a_b</b>"),
        Change("is open", "true", "false"),
    ]
    assert changes({"status": ["awaiting_approval", "queued"]})[0].before == "awaiting approval"
