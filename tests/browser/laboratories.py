"""Laboratories as people find them: at work, with nothing in them yet, and filled by somebody who means harm; and a worker beside the browser."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from django.db import connection
from django.utils import timezone

from runs.commands.approval import decide_approval
from runs.commands.dataset_import import WantedFile, request_import
from runs.commands.decision import decide_now
from runs.commands.export import request_export
from runs.commands.memory import Said, review_memory, write_memory
from runs.commands.overlap import Finding, overrule_verdict, record_index, record_overlap, set_reusable
from runs.commands.policy import create_policy, propose_version
from runs.commands.review import review_run
from runs.commands.sweep import create_sweep
from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.contact import note_answer, note_silence
from runs.eligibility import Fact, Link, Verdict
from runs.launch import LaunchRequest
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Decision, Evaluation, Run
from runs.queries.withdrawal import find_subject
from runs.review import Finding as Surprise
from runs.review import Reason
from tests.factories import make_member
from tests.factories_pages import (
    add_artifact,
    add_attempt,
    add_check,
    add_line,
    add_samples,
    add_series,
    copy_runs,
    fail_run,
    give_players,
    score_runs,
    see,
    set_run,
)
from tests.factories_people import make_group, make_invitation, make_operator, make_token
from tests.factories_promotions import add_gate, add_promotion
from tests.factories_registry import make_dataset_version
from tests.factories_runs import HOUR, Laboratory, dispatch, launch, make_laboratory, watch
from workspaces.access import Actor
from workspaces.commands.agent import change_agent
from workspaces.commands.approval_comment import comment_on
from workspaces.commands.benchmark import change_benchmark
from workspaces.commands.dataset import change_dataset
from workspaces.commands.delegation import delegate
from workspaces.commands.external_spend import enter_spend
from workspaces.commands.limit import set_limit
from workspaces.commands.objective import set_objective
from workspaces.commands.secret import create_secret
from workspaces.commands.share import grant_share
from workspaces.commands.workspace import configure_workspace
from workspaces.models import Agent, Approval, AuditEvent, Benchmark, Dataset, DatasetVersion, Limit, Membership, Pool, Unit, User

ENDS = ("succeeded", "failed", "cancelled", "timed_out", "aborted", "lost")

STEPWISE = """
import json, os, time
def tell(file, **body):
    with open("../" + file, "a") as lines:
        lines.write(json.dumps(body) + "\\n")
print("epoch 1 begins", flush=True)
for step in range(3):
    tell("metrics.jsonl", key="loss", value=1 / (step + 1), step=step)
end = time.time() + 60
while not os.path.exists({gate!r}) and time.time() < end:
    time.sleep(0.05)
for step in range(3, 6):
    tell("metrics.jsonl", key="loss", value=1 / (step + 1), step=step)
with open("../outputs/model.json", "w") as model:
    model.write("{{}}")
tell("events.jsonl", type="artifact", path="model.json", name="model", kind="model", metadata={{}})
tell("events.jsonl", type="score", benchmark="accuracy", metric="accuracy", value=0.8125, stderr=0.02, samples=400)
print("epoch 2 is done", flush=True)
"""


def stepwise_laboratory(gate: Path, slug: str = "lab") -> Laboratory:
    """Its agent prints and measures, then waits until the file `gate` is there, then ends with a score. No timing decides what a test sees."""
    return make_laboratory(slug, code=STEPWISE.format(gate=str(gate)).encode())


@contextmanager
def worker(*laboratories: Laboratory) -> Iterator[None]:
    """What workers and clock do, in a thread with a connection of its own, until the block ends and every attempt has ended."""
    stop, faults = threading.Event(), []

    def work() -> None:
        try:
            while not stop.wait(0.1):
                for laboratory in laboratories:
                    dispatch(laboratory)
                    watch(laboratory)
        except BaseException as fault:  # it belongs to the test, not to this thread
            faults.append(fault)
        finally:
            connection.close()

    thread = threading.Thread(target=work, name="worker beside the browser")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
    if faults:
        raise faults[0]
    for laboratory in laboratories:
        with laboratory.opened():
            ends = {*TERMINAL, RunStatus.AWAITING_APPROVAL, RunStatus.QUEUED}
            alive = [run.name for run in Run.objects.all() if RunStatus(run.status) not in ends]
        assert not alive, f"still under way at the end of the test: {alive}"


PASSWORD = "a-long-enough-phrase-7"
LONG, SCRIPT, IMAGE = "unbreakable" * 18, "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'
SURPRISE = Surprise(Reason.SURPRISING, "surprising:0.81", "Its score is 0.81")
RTL, CJK = "ריצה \u202eloss\u202c ראשונה", "第一次训练运行・初めての学習"
MEANT_ILL = (LONG[:200], SCRIPT, IMAGE, RTL, CJK)


def full_laboratory(*names: str) -> tuple[Laboratory, dict[str, str]]:
    """A laboratory with at least one of everything; what people write is taken from `names` in turn. Second: what addresses are filled with."""
    words = (names * 3)[:9] if names else (
        "Accuracy on the holdout", "Biopsies", "Weak labeller", "baseline", "does it learn at all", "Rosalind", "first try", "Raise accuracy", "Lab",
    )  # fmt: skip
    laboratory = make_laboratory(code=b"print('epoch 1')\n")
    owner, workspace = laboratory.owner, laboratory.workspace
    assert owner.user
    owner.user.site_roles = [*User.SiteRole.values]
    owner.user.display_name = words[5][:120]
    owner.user.set_password(PASSWORD)
    owner.user.save()
    member = make_member(workspace, "researcher", "rosalind")
    operator = make_operator()
    assert member.user
    group = make_group(operator, words[6][:80], member.user)
    invitation, word = make_invitation(workspace, owner)
    make_token(workspace, owner, "run:write")
    with laboratory.opened():
        benchmark, dataset, agent = Benchmark.objects.get(), Dataset.objects.get(), Agent.objects.get()
        change_benchmark(actor=owner, benchmark=benchmark, name=words[0], description=words[4], is_public=True)
        change_dataset(actor=owner, dataset=dataset, name=words[1], description=words[4])
        change_agent(actor=owner, agent=agent, name=words[2], description=words[4])
        set_objective(actor=owner, statement=words[7], benchmark="accuracy", target=0.9, due_on=None)
        configure_workspace(
            actor=owner, name=words[8], boundary_reason=words[4], billing_account=words[3], reason=words[6], visibility="public_benchmarks"
        )
        grant_share(
            actor=owner, object_type="benchmark", object_id=benchmark.public_id, to_workspace=None, expires_at=None, reason=words[6]
        )
        set_limit(actor=owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=HOUR, mode=Limit.Mode.APPROVAL, reason=words[6])
        create_secret(
            actor=owner,
            name="HF_TOKEN",
            value="hf_Zw8rQkT5nYc2LpV7",
            description=words[4][:1000],
            agents=[agent],
            pools=[Pool.objects.get()],
        )
        run = launch(laboratory, gpu_ms=HOUR // 2, name=words[3], reason=words[4])
        launch(laboratory, gpu_ms=2 * HOUR, name=words[3], reason=words[4])
        attempt = add_attempt(actor=owner, run=run)
        see(attempt, progress_done=3.0, progress_total=5.0, progress_text=words[6])
        set_run(actor=owner, run=run, status="running", started_at=run.created_at)
        add_series(run, words[2][:250], [0.5, float("nan"), 0.25, 0.2])
        add_series(run, "accuracy", [0.5, 0.6, 0.7, 0.8])
        add_line(attempt, 1, "note", text=words[4])
        note_answer(run.pool, [f"lab-0therone-{key:032x}" for key in range(3)])
        note_silence(run.pool, words[4])
        artifact = add_artifact(actor=owner, run=run, path="outputs/" + words[1].replace("/", "∕")[:150], content=b"x", kind="model")
        sweep = create_sweep(
            actor=owner, name=words[6], space={"kind": "grid", "axes": {}, "seeds": [1, 2, 3]}, purpose=words[4],
            request=LaunchRequest(benchmark="accuracy", agent="worker", datasets=("table",), gpu_ms=HOUR // 2),
        )  # fmt: skip
        made = copy_runs(actor=owner, pattern=run, count=30, statuses=[*ENDS], name=words[3], reason=words[4])
        score_runs(actor=owner, scores={made[0]: (0.81, 0.02), made[4]: (0.7, 0.01), made[8]: (float("nan"), None)})
        for number, of_sweep in enumerate(made[:3], start=1):
            set_run(actor=owner, run=of_sweep, sweep=sweep, sweep_member=number)
        review = review_run(actor=owner, run=made[0], findings=[SURPRISE], comment=words[4][:1000])
        failure = fail_run(actor=owner, run=made[1], lines=["Traceback (most recent call last):", f"ValueError: {words[4]}"])
        spend = enter_spend(actor=owner, amount_micros=1_250_000, currency="EUR", what=words[3][:200], spent_at=timezone.now())
        export = request_export(actor=owner, files="internal", reason=words[6])
        asked = request_import(
            actor=owner, dataset=dataset, role="train", files=[WantedFile("https://example.org/" + "long" * 40, path="table.csv")], reason=words[6]
        )  # fmt: skip
        trained, held_out = DatasetVersion.objects.get(), make_dataset_version(owner, "unseen", role="holdout")
        where = [{"path": "table.csv", "number": 1, "place": 4, "length": 4} for _ in range(2)]
        found = Finding(exact=1, pairs=[{"kind": "exact", "similarity": 1.0, "record": where[0], "holdout": where[1]}])
        for side in (trained, held_out):
            record_index(actor=Actor.system(job_id="test"), version=side, file=None)
        overlap = record_overlap(actor=Actor.system(job_id="test"), version=trained, holdout=held_out, finding=found)
        overrule_verdict(actor=owner, version=trained, verdict="suspicious", reason=words[4])
        set_reusable(actor=owner, version=trained, is_reusable=False, reason=words[4])
        node, label = find_subject("dataset_version", trained.public_id)
        withdrawal = withdraw(actor=owner, subject=node, label=label, reason=words[4])
        undo_withdrawal(actor=owner, withdrawal=withdrawal, reason=words[6])
        facts = [
            Fact("score", words[0], verdict, words[1], words[2], words[4], (Link("run", run.public_id, words[3]),)) for verdict in Verdict
        ]
        evaluation = Evaluation.objects.latest("created_at")
        content = "".join(
            json.dumps({"id": f"{number} {word}"[:250], "truth": word, "output": word, "score": 1}) + "\n"
            for number, word in enumerate(words)
        )
        samples = add_artifact(actor=owner, run=made[0], path="outputs/samples.jsonl", content=f"{content}oops\n".encode(), kind="samples")
        add_samples(actor=owner, evaluation=evaluation, artifact=samples, content=f"{content}oops\n".encode())
        check = add_check(actor=owner, evaluation=evaluation, words=words[4])
        players = [
            artifact,
            *(add_artifact(actor=owner, run=run, path=f"outputs/{word}.pt", content=word.encode()) for word in ("one", "two")),
        ]
        give_players(actor=owner, run=made[12], players=players)
        score_runs(actor=owner, scores={made[12]: (0.6, 0.03)})
        keys = [player.blob.sha256 for player in players]
        matches = [
            {"first": first, "second": second, "pairs": [2, 5, 9, 14, 10]} for first, second in ((keys[1], keys[0]), (keys[2], keys[1]))
        ]
        games = json.dumps({"schema": "labsite.pairs.v1", "matches": matches})
        add_artifact(actor=owner, run=made[12], path="outputs/pairs.json", content=games.encode(), kind="pairs")
        memory = write_memory(
            actor=owner,
            said=Said(
                kind="guidance", collection="openings", title=words[4][:200], text=words[4], configuration={"rate": 0.5, "words": words[4][:200]},
                evidence=(("run", run.public_id), ("dataset_version", trained.public_id)), review_due=run.created_at,
            ),
        )  # fmt: skip
        promotion = add_promotion(actor=owner, artifact=artifact, name="champion", reason=words[4], facts=facts)
        approval = Approval.objects.get()
        decision = _decided(laboratory, words[4])
        gate = [*facts, Fact("reviewer_approval", words[0], Verdict.UNKNOWN, words[1], words[2], words[4])]
        add_gate(actor=owner, promotion=promotion, decision=decision, gate=gate)
        comment_on(actor=owner, approval=approval, text=words[4])
        now = timezone.now()
        delegation = delegate(actor=owner, username="rosalind", starts_at=now, ends_at=now + timedelta(days=7), reason=words[4])
        values = {
            "policy": "next-sweep", "number": "1", "decision": decision.public_id,
            "memoryentry": memory.public_id, "withdrawal": withdrawal.public_id, "promotion": promotion.public_id, "name": "champion",
            "evaluation": evaluation.public_id, "check": check.public_id, "contract": "1", "agentversion": "1",
            "overlap": overlap.public_id,
            "datasetimport": asked.public_id,
            "review": review.public_id,
            "failure": failure.public_id, "spend": spend.public_id, "export": export.public_id,
            "sweep": sweep.public_id,
            "workspace": workspace.slug, "run": run.public_id, "benchmark": "accuracy", "dataset": "table", "agent": "worker", "pool": "local",
            "artifact": artifact.public_id, "version": "1", "path": "table.csv", "event": AuditEvent.objects.latest("sequence").public_id,
            "approval": approval.public_id, "kind": "run", "delegation": delegation.public_id,
            "limit": Limit.objects.filter(window="week").get().public_id,
            "member": Membership.objects.get(user=member.user).public_id, "invitation": invitation.pk.hex, "word": word, "secret": "HF_TOKEN",
            "username": "rosalind", "group": str(group.pk), "engine": "local",
        }  # fmt: skip
    return laboratory, values


def _decided(laboratory: Laboratory, words: str) -> Decision:
    """What a policy decided whose name, reason and configurations are these words. The scope must be open."""
    owner = laboratory.owner
    judge = make_member(laboratory.workspace, "approver")
    policy = create_policy(actor=owner, slug="next-sweep", name=words[:200])
    for rate, kind in ((0.2, "finding"), (0.1, "failed_attempt")):
        against = {"rate": rate, "words": words[:200]}
        said = Said(kind=kind, collection="openings", title=words[:200], text=words, configuration=against)
        entry = write_memory(actor=owner, said=said)
        review_memory(actor=judge, entry=entry, trust="confirmed", seen_hash=entry.content_hash, comment=words[:1000])
    document = {
        "trigger": {"on": "manual"},
        "conditions": [{"check": "nothing_under_way"}, {"check": "target_not_reached"}],
        "gate": [{"check": "budget_left", "gpu_hours": 1}, {"check": "memory_age", "days": 30}, {"check": "egress", "at_most": "internal"}],
        "action": {
            "do": "launch_sweep", "agent": "worker", "benchmark": "accuracy", "inputs": [{"dataset": "table"}], "purpose": words[:1000],
            "choose": {"rule": "ucb1", "axes": {"rate": [0.1, 0.2], "words": [words[:200], "other"]}, "arms": 2},
            "memory": {"avoid": "openings"},
        },
        "limits": {"decisions": 5},
    }  # fmt: skip
    version = propose_version(actor=owner, policy=policy, document=document, reason=words)
    asked = Approval.objects.get(subject_id=version.pk)
    decide_approval(actor=judge, approval=asked, approves=True, seen_hash=asked.content_hash)
    return decide_now(actor=owner, policy=policy)
