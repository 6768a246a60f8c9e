"""Policies: `make bench BENCH=policies ARGS=[decisions]`.

One decision with ten checks over 1,000 results; a simulation over as many stored decisions; and what the pages of policies, decisions and memory
cost in CPU time. Decisions are copied by the owner of the tables from one that was taken, as with the results of 200 runs.
"""

import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # after the settings are read, as everything below
from django.db import connection  # noqa: E402
from django.test.utils import override_settings  # noqa: E402

from labsite.owner import as_owner  # noqa: E402
from runs.commands.approval import decide_approval  # noqa: E402
from runs.commands.decision import decide_now  # noqa: E402
from runs.commands.memory import Said, write_memory  # noqa: E402
from runs.commands.policy import create_policy, propose_version  # noqa: E402
from runs.models import Decision, Policy  # noqa: E402
from runs.policy.decide import decide  # noqa: E402
from runs.policy.document import read_policy  # noqa: E402
from runs.policy.facts import Facts, Result  # noqa: E402
from runs.queries.policy import preview  # noqa: E402
from tests.bench.page_cost import PLAIN, measure  # noqa: E402
from tests.factories import make_member  # noqa: E402
from tests.factories_pages import client_of, copy_runs, score_runs  # noqa: E402
from tests.factories_runs import Laboratory, launch, make_laboratory  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces.models import Approval  # noqa: E402

DECISIONS, RUNS = 10_000, 200
DECISION_MS, SIMULATION_SECONDS, PAGE_MS = 20.0, 30.0, 15.0
DOCUMENT = {
    "trigger": {"on": "manual"},
    "conditions": [{"check": "nothing_under_way", "at_most": 9}, {"check": "target_not_reached"}, {"check": "results_at_least", "count": 1}]
    * 2,
    "gate": [{"check": "budget_left", "gpu_hours": 1}, {"check": "best_score", "at_least": 0}] * 2,
    "action": {
        "do": "launch_sweep",
        "agent": "worker",
        "benchmark": "accuracy",
        "inputs": [{"dataset": "table"}],
        "choose": {"rule": "ucb1", "axes": {"rate": [number / 100 for number in range(100)]}, "arms": 4},
    },
}
COPY = """
INSERT INTO runs_decision (id, created_at, workspace_id, policy_id, version_id, number, cause_type, cause_id, cause_label, outcome, status, words,
    facts, checks, candidates, gpu_ms, stops, failure, ended_at)
SELECT gen_random_uuid(), now() - i * interval '1 minute', workspace_id, policy_id, version_id, number + i, cause_type, gen_random_uuid(),
    cause_label, outcome, 'done', words, facts, checks, candidates, gpu_ms, stops, failure, now()
FROM runs_decision, generate_series(1, %s) i
"""


def main(decisions: int) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory()
    with laboratory.opened():
        policy, decision = decided(laboratory)
        entry = write_memory(
            actor=laboratory.owner, said=Said(kind="finding", collection="openings", title="A finding", text="What was found", evidence=())
        )
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(COPY, [decisions - 1])
        cursor.execute("ANALYZE runs_decision")
    one_ms = decision_ms()
    print(
        f"one decision, ten checks, 1,000 results {one_ms:8.1f} ms   target {DECISION_MS:.0f}: {judged('decision', one_ms < DECISION_MS)}"
    )
    with laboratory.opened():
        begun = time.perf_counter()
        seen = preview(policy, {**DOCUMENT, "limits": {"decisions": 3}})
        seconds = time.perf_counter() - begun
        assert seen.simulation is not None
        assert seen.simulation["decisions"] == decisions
    verdict = judged("simulation", seconds < SIMULATION_SECONDS)
    print(f"a simulation of {decisions:,} decisions   {seconds:8.1f} s    target {SIMULATION_SECONDS:.0f}: {verdict}")
    client = client_of(laboratory.owner)
    client.defaults["SERVER_NAME"] = "localhost"
    for name, path in {
        "decision": f"decisions/{decision.public_id}/",
        "policy": "policies/next-sweep/",
        "policy version": "policies/next-sweep/versions/1/",
        "memory entry": f"memory/{entry.public_id}/",
    }.items():
        cost, statements = measure(client, f"/workspaces/lab/{path}", 10)
        print(f"{name:34} {cost:8.1f} ms {statements:4} statements   target {PAGE_MS:.0f}: {judged(name, cost <= PAGE_MS)}")


def decided(laboratory: Laboratory) -> tuple[Policy, Decision]:
    """A policy that acts, asked once. The scope must be open."""
    owner = laboratory.owner
    made = copy_runs(actor=owner, pattern=launch(laboratory), count=RUNS)
    score_runs(actor=owner, scores={run: (0.5 + index / 1000, 0.02) for index, run in enumerate(made)})
    policy = create_policy(actor=owner, slug="next-sweep", name="Next sweep")
    version = propose_version(actor=owner, policy=policy, document=DOCUMENT)
    asked = Approval.objects.get(subject_id=version.pk)
    decide_approval(actor=make_member(laboratory.workspace, "approver"), approval=asked, approves=True, seen_hash=asked.content_hash)
    return policy, decide_now(actor=owner, policy=policy)


def decision_ms() -> float:
    results = tuple(Result(f"run_{number}", f"run {number}", {"rate": number % 100 / 100}, number / 1000) for number in range(1_000))
    facts = Facts(
        at="2026-11-29T12:00:00+00:00", cause={"label": "somebody"}, of={"agent": "worker", "benchmark": "accuracy"}, left_gpu_ms=10**9,
        gpu_ms_each=1, target=2.0, best=1.0, results=results,
    )  # fmt: skip
    policy = read_policy(DOCUMENT)
    begun = time.perf_counter()
    for _ in range(20):
        decide(policy, facts)
    return (time.perf_counter() - begun) * 1000 / 20


if __name__ == "__main__":
    with override_settings(STORAGES=PLAIN):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else DECISIONS)
    leave()
