"""A declared workspace: the two examples of the specification as written, and everything that a file can get wrong."""

import time
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from workspaces.declaration import MAX_BYTES, DeclarationError, DeclaredAgent, DeclaredBudget, Fault, parse_declaration, yaml_source

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


@pytest.fixture(params=["as installed", "python"])
def yaml_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """libyaml's parser may be missing; what is refused must not depend on it."""
    if request.param == "python":
        monkeypatch.setattr(yaml_source, "_LOADER", yaml.SafeLoader)
    return str(request.param)


def faults(content: bytes | str, syntax: Literal["json", "yaml"] | None = None) -> dict[str, tuple[str, int | None]]:
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(content, syntax)
    return {fault.path: (fault.reason, fault.line) for fault in caught.value.faults}


def test_json_example_as_written() -> None:
    found = parse_declaration(AUTOGO)
    assert found.slug == "autogo-main"
    assert found.pools == ("ssh-a100-west", "spot-h100-batch")
    assert found.benchmarks == ("go-fast-learning", "arena-elo-regression")
    assert found.memory == ("failed-search-configs", "promoted-openings")
    assert found.policies == ("launch-next-sweep", "promote-checkpoint")
    assert found.budgets == (
        DeclaredBudget("gpu_hours_per_week", "gpu_ms", "week", 1200 * 3_600_000),
        DeclaredBudget("max_concurrent_runs", "runs", "concurrent", 48),
    )
    assert found.unknown_keys == ()


def test_yaml_example_as_written(yaml_loader: str) -> None:
    found = parse_declaration(W2S.encode())
    assert found.slug == "w2s-medqa"
    assert found.agents == (
        DeclaredAgent("weak-labeler-v3", "teacher"),
        DeclaredAgent("rubric-judge-v2", "teacher"),
        DeclaredAgent("strong-candidate-a", "student"),
        DeclaredAgent("strong-candidate-b", "student"),
    )
    assert found.datasets == ("weak_labels_2026_05", "disagreement_holdout", "reviewed_promotions")
    assert found.gates == ("no_holdout_regression", "calibrated_disagreement_gain", "reviewer_approval")
    assert found.unknown_keys == ()


def test_json_and_yaml_say_the_same(yaml_loader: str) -> None:
    assert parse_declaration(AUTOGO, "yaml") == parse_declaration(AUTOGO, "json")


def test_every_field_of_creation(yaml_loader: str) -> None:
    found = parse_declaration("""
workspace: medical
name: Größe der Zelle
owners: [ada, grace@example.org]
billing_account: research
cost_centre: "4711"
boundary_kind: Security boundary
boundary_reason: |
  Patients agreed
  to this project only.
zone: Europe/Berlin
week_start: Sunday
visibility: private
region: local
objective:
  statement: Reach 95 %
  benchmark: holdout
  target: 0.95
  due: 2026-12-31
budgets:
  gpu_hours_per_run: {amount: 0.1, mode: needs approval}
  api_spend_per_week: 12.5
colour: red
""")
    assert (found.name, found.owners, found.cost_centre) == ("Größe der Zelle", ("ada", "grace@example.org"), "4711")
    assert (found.boundary_kind, found.boundary_reason) == ("security_boundary", "Patients agreed\nto this project only.")
    assert (found.zone, found.week_start, found.visibility, found.region) == ("Europe/Berlin", 7, "private", "local")
    assert found.objective is not None
    assert (found.objective.target, found.objective.due) == (Decimal("0.95"), date(2026, 12, 31))
    assert [(budget.amount, budget.mode) for budget in found.budgets] == [(360_000, "needs_approval"), (12_500_000, "hard_stop")]
    assert found.unknown_keys == ("colour",)


def test_all_faults_come_at_once_with_their_lines(yaml_loader: str) -> None:
    found = faults("""
workspace: Autogo Main
budgets:
  gpu_hours_per_week: -1
  max_concurrent_runs: true
  storage_bytes: .nan
  gpu_days: 3
datasets: a, b, , A
agents: [x, y]
teacher_agents: x
zone: Mars/Olympus
zone: UTC
objective: {target: high}
""")
    assert {path: line for path, (_, line) in found.items()} == {
        "workspace": 2,
        "budgets.gpu_hours_per_week": 4,
        "budgets.max_concurrent_runs": 5,
        "budgets.storage_bytes": 6,
        "budgets.gpu_days": 7,
        "datasets[2]": 8,
        "datasets[3]": 8,
        "teacher_agents": 10,
        "zone": 12,
        "objective": 13,
        "objective.target": 13,
    }
    assert found["budgets.max_concurrent_runs"][0] == "must be a number, not true or false"
    assert "gpu_hours_per_week" in found["budgets.gpu_days"][0]


def test_json_faults_have_lines() -> None:
    found = faults('{\n "workspace": "a",\n "workspace": "b",\n "budgets": {"max_concurrent_runs":\n  1.5,\n  "storage_bytes": NaN}\n}')
    assert found["workspace"] == ("stands twice, first on line 2", 3)
    assert found["budgets.max_concurrent_runs"][1] == 4
    assert found["budgets.storage_bytes"] == ("must be a finite number", 6)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        ("workspace: a\ud800", "surrogate"),
        ("workspace: a\x00b", "NUL"),
        ("workspace: a\n---\nworkspace: b", "second document"),
        ("a: &x [1]\nb: *x", "anchor or alias"),
        ("workspace: *x", "anchor or alias"),
        ("a: !!python/object/apply:os.system [ls]", "tag"),
        ("? [a, b]\n: c", "as a key"),
        ("a: [1, 2", "is not YAML"),
        ("workspace: a\nlist: [" + "1," * 10_000 + "]", "more than 10,000 values"),
        ('{"list": [' + "1," * 10_000 + "1]}", "more than 10,000 values"),
        ("a: [[[[[[[[]]]]]]]]", "nested deeper than 8"),
        ('{"a": [[[[[[[[]]]]]]]]}', "nested deeper than 8"),
        ("- a\n- b", "must be a mapping"),
        ("just words", "must be a mapping"),
        ('{"workspace": "a",}', "is not JSON"),
        ('{"workspace": "a"} trailing', "after the end"),
        ('{"workspace" "a"}', "':' was expected"),
        ('{"workspace": "a" "b": 1}', "',' or '}' was expected"),
        ("{", "is not JSON"),
        ('{"workspace": [', "is not JSON"),
        ('{"workspace": "a', "is not JSON"),
        ('{"workspace": "a\nb"}', "control character"),
    ],
)
def test_text_that_cannot_be_read(content: bytes | str, part: str, yaml_loader: str) -> None:
    found = faults(content)
    assert list(found) == [""]
    assert part in found[""][0]


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ('{"workspace": "a\\ud800"}', "workspace"),
        ('{"workspace": "a\\u0000b"}', "workspace"),
        ('{"workspace": "a", "name": "read\\u202esdrawkcab"}', "name"),
        ('{"workspace": "a", "name": "two\\nlines"}', "name"),
        ('{"workspace": "new"}', "workspace"),
        ('{"workspace": 7}', "workspace"),
        ('{"workspace": {"deep": 1}}', "workspace"),
        ('{"name": "no slug"}', "workspace"),
        ('{"workspace": null}', "workspace"),
        ('{"workspace": "a", "workspace_id": "a"}', "workspace_id"),
        ('{"workspace": "a", "datasets": {"b": 1}}', "datasets"),
        ('{"workspace": "a", "datasets": [["b"]]}', "datasets[0]"),
        ('{"workspace": "a", "datasets": "a-b, a_b"}', "datasets[1]"),
        ('{"workspace": "a", "budgets": [1]}', "budgets"),
        ('{"workspace": "a", "budgets": {"max_concurrent_runs": "48"}}', "budgets.max_concurrent_runs"),
        ('{"workspace": "a", "budgets": {"max_concurrent_runs": 1e400}}', "budgets.max_concurrent_runs"),
        ('{"workspace": "a", "budgets": {"max_concurrent_runs": 1e99999999999999999999}}', "budgets.max_concurrent_runs"),
        ('{"workspace": "a", "budgets": {"gpu_hours_per_week": 1e-999999}}', "budgets.gpu_hours_per_week"),
        ('{"workspace": "a", "budgets": {"gpu_hours_per_week": 0.0000001}}', "budgets.gpu_hours_per_week"),
        ('{"workspace": "a", "budgets": {"gpu_hours_per_week": -Infinity}}', "budgets.gpu_hours_per_week"),
        ('{"workspace": "a", "budgets": {"gpu_hours_per_week": {"mode": "warn"}}}', "budgets.gpu_hours_per_week"),
        ('{"workspace": "a", "budgets": {"gpu_hours_per_week": {"amount": 1, "mode": "soft"}}}', "budgets.gpu_hours_per_week.mode"),
        ('{"workspace": "a", "week_start": 1}', "week_start"),
        ('{"workspace": "a", "zone": "../../etc/passwd"}', "zone"),
        ('{"workspace": "a", "boundary_kind": "whim"}', "boundary_kind"),
        ('{"workspace": "a", "objective": {"statement": "s", "due": "20261231"}}', "objective.due"),
    ],
)
def test_values_that_are_refused(content: str, path: str) -> None:
    assert list(faults(content)) == [path]


@pytest.mark.parametrize(
    "content",
    [
        "[" * 900_000,
        '{"a":' + "[" * 900_000,
        "a: " + "[" * 900_000,
        "a: " + "{b: " * 200_000,
        '{"workspace": "' + "a" * 1_000_000 + '"}',
        '{"workspace": "a", "budgets": {"storage_bytes": 0.' + "1" * 1_000_000 + "}}",
        '{"workspace": "a", "budgets": {"storage_bytes": ' + "1" * 1_000_000 + "}}",
        '{"workspace": "a", "datasets": "' + "a," * 500_000 + '"}',
        "workspace: a\n" + "a: 1\n" * 100_000,
        "x" * (MAX_BYTES + 1),
    ],
)
def test_large_and_deep_files_end_soon_in_a_short_message(content: str) -> None:
    began = time.process_time()
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(content)
    # A bound against quadratic reading, which would take minutes; not a measurement.
    assert time.process_time() - began < 20
    assert len(str(caught.value)) < 20_000


def test_words_that_other_yaml_versions_turn_into_values_stay_names(yaml_loader: str) -> None:
    assert parse_declaration("workspace: a\ndatasets: [no, on, y, 2026-05-01, 0x1f, 0123, 1_000]").datasets == (
        "no", "on", "y", "2026-05-01", "0x1f", "0123", "1_000",
    )  # fmt: skip


def test_nothing_after_a_key_says_nothing(yaml_loader: str) -> None:
    found = parse_declaration("workspace: a\ndatasets:\nname:\nbudgets:\nzone: null\n")
    assert (found.datasets, found.name, found.budgets, found.zone) == ((), None, (), None)


@given(st.decimals(min_value=0, max_value=10**9, places=12))
def test_gpu_hours_are_never_rounded(hours: Decimal) -> None:
    content = f'{{"workspace": "a", "budgets": {{"gpu_hours_per_week": {hours:f}}}}}'
    exact = Fraction(hours) * 3_600_000
    if exact.denominator == 1:
        assert parse_declaration(content).budgets[0].amount == exact
    else:
        assert list(faults(content)) == ["budgets.gpu_hours_per_week"]


@given(st.binary(max_size=200) | st.text(alphabet='{}[]:,"-&*!|>#?\n aä1.eE', max_size=80))
def test_any_content_is_read_or_refused(content: bytes | str) -> None:
    syntaxes: tuple[Literal["json", "yaml"] | None, ...] = (None, "json", "yaml")
    for syntax in syntaxes:
        try:
            slug, found = parse_declaration(content, syntax).slug, tuple[Fault, ...]()
        except DeclarationError as exc:
            slug, found = "", exc.faults
        # Either a workspace, or faults with a reason each; any other exception fails the test.
        assert bool(slug) != bool(found)
        assert all(fault.reason for fault in found)
