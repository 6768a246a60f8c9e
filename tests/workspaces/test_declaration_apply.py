"""`manage.py apply` of the specification's examples: what it makes, what it keeps as a name, and that a second time changes nothing."""

import json
from pathlib import Path

import asyncssh
import pytest
from django.core.management import CommandError, call_command

from tests.factories import make_user, make_workspace, scope
from tests.factories_people import make_operator
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.declaration import apply_declaration
from workspaces.commands.engine import add_engine
from workspaces.commands.secret import create_secret
from workspaces.declaration import DeclarationError, parse_declaration
from workspaces.models import (
    Agent,
    AuditEvent,
    Benchmark,
    Dataset,
    DeclaredName,
    Engine,
    Limit,
    Membership,
    Objective,
    Pool,
    Secret,
    User,
    Workspace,
)

pytestmark = pytest.mark.django_db

AUTOGO = """{
  "workspace": "autogo-main",
  "compute_pools": ["ssh-a100-west", "spot-h100-batch"],
  "benchmarks": ["go-fast-learning", "arena-elo-regression"],
  "shared_memory": ["failed-search-configs", "promoted-openings"],
  "policies": ["launch-next-sweep", "promote-checkpoint"],
  "budgets": { "gpu_hours_per_week": 1200, "max_concurrent_runs": 48 }
}
"""
W2S = """workspace_id: w2s-medqa
teacher_agents: weak-labeler-v3, rubric-judge-v2
student_agents: strong-candidate-a, strong-candidate-b
datasets: weak_labels_2026_05, disagreement_holdout, reviewed_promotions
gates: no_holdout_regression, calibrated_disagreement_gain, reviewer_approval
"""


HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDDmM1Vd3yWRiNJ0gMWfVlhTKoM6eJ8U9mN6qBIJ0a2T"


def private_key() -> str:
    return asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()


@pytest.fixture
def founder() -> Actor:
    return Actor.of(make_user("founder", User.SiteRole.CREATE_WORKSPACE))


def apply(founder: Actor, text: str) -> list[tuple[str, str]]:
    return [(step.did, step.words) for step in apply_declaration(actor=founder, declaration=parse_declaration(text)).steps]


def events(slug: str) -> int:
    with scope.open_workspace(Workspace.objects.get(slug=slug).pk):
        return AuditEvent.objects.count()


def test_json_example(founder: Actor) -> None:
    apply(founder, AUTOGO)
    workspace = Workspace.objects.get(slug="autogo-main")
    with scope.open_workspace(workspace.pk):
        assert set(Benchmark.objects.values_list("slug", flat=True)) == {"go-fast-learning", "arena-elo-regression"}
        assert set(Limit.objects.values_list("unit", "window", "amount", "mode")) == {
            ("gpu_ms", "week", 1200 * 3_600_000, "stop"),
            ("runs", "now", 48, "stop"),
        }
        assert set(DeclaredName.objects.values_list("kind", "slug")) == {
            ("pool", "ssh-a100-west"),
            ("pool", "spot-h100-batch"),
            ("memory", "failed-search-configs"),
            ("memory", "promoted-openings"),
            ("policy", "launch-next-sweep"),
            ("policy", "promote-checkpoint"),
        }
        assert founder.user is not None
        assert list(Membership.objects.values_list("user__username", "role")) == [("founder", "owner")]


def test_pools_are_bound_to_the_engines_of_their_names(founder: Actor) -> None:
    operator = make_operator()
    add_engine(actor=operator, slug="spot-h100-batch", kind=Engine.Kind.SLURM, slots=8, gpu_kind="H100")
    add_engine(
        actor=operator, slug="ssh-a100-west", kind=Engine.Kind.SSH, slots=4, gpu_kind="A100", host="a100.example.org", host_key=HOST_KEY
    )
    steps = apply(founder, AUTOGO)
    assert ("created", "pool spot-h100-batch on the engine spot-h100-batch, 8 slots, isolation none") in steps
    (kept,) = [words for did, words in steps if did == "kept" and words.startswith("pool ")]
    assert kept.startswith("pool ssh-a100-west: Name the account on a100.example.org")
    with scope.open_workspace(Workspace.objects.get(slug="autogo-main").pk):
        assert Pool.objects.get().slug == "spot-h100-batch"
        create_secret(actor=founder, name="A100_KEY", kind=Secret.Kind.SSH_KEY, value=private_key())
    before = events("autogo-main")
    assert [step for step in apply(founder, AUTOGO) if step[0] != "unchanged"] == []
    assert events("autogo-main") == before
    declared = json.loads(AUTOGO)
    declared["compute_pools"][0] = {"name": "ssh-a100-west", "slots": 2, "login": "labpool", "folder": "~/labsite", "secret": "A100_KEY"}
    assert ("created", "pool ssh-a100-west on the engine ssh-a100-west, 2 slots, isolation none") in apply(founder, json.dumps(declared))
    with scope.open_workspace(Workspace.objects.get(slug="autogo-main").pk):
        pool = Pool.objects.get(slug="ssh-a100-west")
        assert (pool.slots, pool.login, pool.folder) == (2, "labpool", "~/labsite")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"slots": 2}, "has no name"),
        ({"name": "x", "key": "y"}, "is not known here"),
        ({"name": "x", "slots": 1.5}, "slots"),
        ({"name": "x", "isolation": "total"}, "must be one of"),
        ({"name": "X Y"}, "X Y"),
    ],
)
def test_a_pool_that_is_declared_wrongly_is_a_fault_with_its_place(entry: dict[str, object], words: str) -> None:
    with pytest.raises(DeclarationError) as found:
        parse_declaration(json.dumps({"workspace": "autogo-main", "compute_pools": ["a", entry]}))
    assert any(fault.path.startswith("compute_pools[1]") and words in fault.reason for fault in found.value.faults)


def test_yaml_example(founder: Actor) -> None:
    apply(founder, W2S)
    with scope.open_workspace(Workspace.objects.get(slug="w2s-medqa").pk):
        assert dict(Agent.objects.values_list("slug", "part")) == {
            "weak-labeler-v3": "teacher",
            "rubric-judge-v2": "teacher",
            "strong-candidate-a": "student",
            "strong-candidate-b": "student",
        }
        assert set(Dataset.objects.values_list("slug", flat=True)) == {"weak_labels_2026_05", "disagreement_holdout", "reviewed_promotions"}
        assert DeclaredName.objects.filter(kind="gate").count() == 3


@pytest.mark.parametrize(("text", "slug"), [(AUTOGO, "autogo-main"), (W2S, "w2s-medqa")])
def test_second_time_changes_nothing(founder: Actor, text: str, slug: str) -> None:
    apply(founder, text)
    before = events(slug)
    assert {did for did, _ in apply(founder, text)} == {"unchanged"}
    assert events(slug) == before


def test_update_changes_only_what_differs_and_removes_nothing(founder: Actor) -> None:
    apply(founder, AUTOGO)
    steps = apply(
        founder,
        """workspace: autogo_main
name: AutoGo
zone: Europe/Berlin
week_start: sunday
visibility: public
benchmarks: go_fast_learning, blitz
budgets: {gpu_hours_per_week: 1300}
agents: policy-runner
objective: {statement: Win faster, benchmark: blitz, target: 0.5, due: 2027-01-31}
colour: blue
""",
    )
    changed = [entry for entry in steps if entry[0] != "unchanged"]
    assert changed == [
        ("ignored", "colour: not known, left out"),
        ("changed", "workspace autogo-main: name, zone, visibility, week start"),
        ("created", "benchmark blitz, without a contract yet"),
        ("created", "agent policy-runner, without a version yet"),
        ("changed", changed[4][1]),
        ("created", "objective: Win faster"),
    ]
    assert "1,300" in changed[4][1]
    workspace = Workspace.objects.get(slug="autogo-main")
    assert (workspace.week_start, workspace.visibility) == (6, "public_benchmarks")
    with scope.open_workspace(workspace.pk):
        assert Benchmark.objects.count() == 3
        assert Limit.objects.get(unit="gpu_ms").amount == 1300 * 3_600_000
        objective = Objective.objects.get(is_current=True)
        assert (objective.benchmark and objective.benchmark.slug, objective.target, str(objective.due_on)) == ("blitz", 0.5, "2027-01-31")


def test_unknown_owner_stops_before_anything(founder: Actor) -> None:
    with pytest.raises(Refusal, match="nobody"):
        apply(founder, "workspace: lab\nowners: ghost")
    assert not Workspace.objects.filter(slug="lab").exists()


def test_strangers_learn_and_change_nothing() -> None:
    make_workspace("lab")
    stranger = Actor.of(make_user("stranger", User.SiteRole.CREATE_WORKSPACE))
    with pytest.raises(Refusal, match="already"):
        apply(stranger, "workspace: lab")
    with pytest.raises(Denied):
        apply(Actor.of(make_user("nobody")), "workspace: fresh")
    assert not Workspace.objects.filter(slug="fresh").exists()


def test_command_line(founder: Actor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lab.json"
    file.write_text(AUTOGO)
    call_command("apply", str(file), "--as", "founder")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "+ created   workspace autogo-main, owned by Founder"
    assert "? kept      pool ssh-a100-west: no engine is bound under this name yet" in said
    call_command("apply", str(file), "--as", "founder")
    assert capsys.readouterr().out.splitlines()[-1] == "autogo-main is as the file says; nothing was changed."
    call_command("apply", str(file), "--as", "founder", "--json")
    answer = json.loads(capsys.readouterr().out)
    assert (answer["workspace"], answer["is_new"], answer["changed"]) == ("ws_autogo-main", False, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b'{"workspace": "lab", "budgets": {"gpu_hours_per_week": -1}}', "0 or more"),
        (b'{"workspace": "lab", "budgets": {"gpu_hours_per_week": NaN}}', "finite"),
        (b"workspace: lab\x00", "NUL"),
        (b'{"workspace": "\\ud800"}', "workspace"),
        (b"workspace: " + b"x" * 1_100_000, "at most"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_bad_files_are_refused_in_words(founder: Actor, tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "bad"
    file.write_bytes(content)
    with pytest.raises(CommandError, match=words):
        call_command("apply", str(file), "--as", "founder")
    assert not Workspace.objects.exists()


def test_missing_file_and_person(founder: Actor, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("apply", str(tmp_path / "none"), "--as", "founder")
    with pytest.raises(CommandError, match="nobody named ghost"):
        call_command("apply", str(tmp_path / "none"), "--as", "ghost")
