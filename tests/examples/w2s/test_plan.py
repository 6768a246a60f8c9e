"""The plan holds together: what a run names exists before it, what it is given its agent's schema takes."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from labsite.examples.ground import plain
from labsite.examples.w2s import plan, policies, rounds
from runs.policy.document import read_policy
from workspaces.agent_inputs import Given, unmet

AGENTS = {agent.slug: agent for agent in plan.AGENTS}
HOLDOUTS = {plan.HOLDOUT, plan.DISAGREEMENT.slug}
BY_POLICIES = {policies.TRAIN_A.slug, policies.TRAIN_B.slug}
FROM_RUNS = {plan.WEAK_LABELS.first_window, plan.PROMOTIONS.first_window, plan.DISAGREEMENT.slug}


@pytest.mark.parametrize("agent", plan.AGENTS, ids=lambda agent: agent.slug)
def test_every_parameter_is_described_with_a_default_and_bounds(agent: Any) -> None:
    schema = dict(agent.parameters)
    Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    for name, entry in schema["properties"].items():
        assert entry["description"].endswith("."), name
        assert "default" in entry or (agent is plan.EVALUATOR and name == "target")
        bounds = {"integer": {"minimum", "maximum"}, "number": {"minimum", "maximum"}, "string": {"minLength"}, "array": {"items"}}
        assert bounds.get(entry["type"], set()) <= set(entry), name
    Draft202012Validator(schema).validate({name: entry["default"] for name, entry in schema["properties"].items() if "default" in entry})


def test_every_run_is_named_once_has_a_reason_and_rests_on_what_came_before() -> None:
    benchmarks = {entry.slug for entry in plan.BENCHMARKS}
    datasets = {entry.slug for entry in plan.DATASETS}
    before: set[str] = set()
    for run in rounds.RUNS:
        assert run.key not in before
        assert len(run.reason) > 15
        assert run.benchmark in benchmarks
        Draft202012Validator(dict(AGENTS[run.agent].parameters)).validate(dict(run.params))
        assert set(run.datasets) <= datasets | FROM_RUNS
        assert {*run.models_of, *run.after} <= before | BY_POLICIES, run.key
        before.add(run.key)
    assert len(before) == len(rounds.RUNS) == 19


def test_no_run_that_trains_reads_a_holdout_and_no_student_the_truth() -> None:
    for run in rounds.RUNS:
        if AGENTS[run.agent].kind == "train":
            assert not set(run.datasets) & HOLDOUTS, run.key
        if run.names_frozen_set:
            assert set(run.datasets) <= {plan.WEAK_LABELS.first_window, plan.PROMOTIONS.first_window}


def test_before_the_freeze_there_is_no_student_and_after_it_each_names_the_set() -> None:
    assert not {run.agent for run in rounds.UNTIL_FROZEN if run.benchmark != plan.CEILING.slug} & {plan.STRONG_A.slug, plan.STRONG_B.slug}
    assert {run.key for run in rounds.RUNS if run.names_frozen_set} == {rounds.SHUFFLED.key}
    assert {entry.slug for entry in policies.POLICIES if entry.names_frozen_set} == BY_POLICIES
    assert plan.DISAGREEMENT.made_by == rounds.UNTIL_FROZEN[-1].key
    assert {run.key for run in rounds.GAPS} == {"gap-a", "gap-b", "control-a", "control-b"}


def test_every_policy_is_taken_has_limits_and_names_what_is_planned() -> None:
    planned = {"agent": set(AGENTS), "benchmark": {entry.slug for entry in plan.BENCHMARKS}}
    for entry in policies.POLICIES:
        document = plain(entry.document)
        policy = read_policy(document)
        assert policy.limits["decisions"] > 0, "none acts for ever"
        assert "gpu_hours_a_week" in policy.limits or not policy.does.startswith("launch")
        for part in (policy.trigger, policy.action):
            for name, slugs in planned.items():
                assert part.get(name) is None or part[name] in slugs, entry.slug
        if "agent" in policy.action:
            Draft202012Validator(dict(AGENTS[policy.action["agent"]].parameters)).validate(policy.action.get("parameters", {}))
    assert len({entry.slug for entry in policies.POLICIES}) == len(policies.POLICIES)


def test_controls_have_a_benchmark_of_their_own_and_are_named_as_what_they_are() -> None:
    shuffled = {run.key for run in rounds.RUNS if run.params.get("shuffle_labels")}
    assert shuffled == {"control-student-a", "control-a", "control-b"}
    controls = {run.key for run in rounds.RUNS if run.key in shuffled or shuffled & set(run.models_of)}
    assert {run.key for run in rounds.RUNS if run.benchmark == plan.CONTROL.slug} == controls
    for run in rounds.RUNS:
        assert ("control" in run.key) == (run.key in controls)
        assert run.params.get("benchmark", run.benchmark) == run.benchmark, "what it scores, it scores where it was asked for"
    assert plan.CONTROL.slug != plan.WORKSPACE.objective_benchmark
    assert "Target 0" in plan.CONTROL.description


def test_each_run_is_given_what_its_agent_says_that_it_needs() -> None:
    roles = {entry.slug: entry.role for entry in plan.DATASETS} | {plan.DISAGREEMENT.slug: "holdout"}
    roles |= {entry.first_window: "train" for entry in plan.GROWN}
    for run in rounds.RUNS:
        needs = AGENTS[run.agent].inputs
        assert needs, run.agent
        kinds = ["control" if key == rounds.SHUFFLED.key else "model" for key in run.models_of]
        given = [Given(slug, "dataset", roles[slug]) for slug in run.datasets]
        given += [Given(key, "artifact", kind) for key, kind in zip(run.models_of, kinds, strict=True)]
        assert unmet(needs, given) == [], run.key
