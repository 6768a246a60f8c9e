"""Every command is keyword-only, typed, has its verb, and a permission or a reason; every job's name resolves and takes ids only."""

import importlib
import inspect
import pkgutil
import uuid
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest
from django.conf import settings

import runs.commands
import workspaces.commands
from runs import queue
from runs.commands.archive import archive_workspace
from tests.factories import make_workspace
from workspaces import scope
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Archived, Draft
from workspaces.site_audit import SiteDraft, SiteVerb
from workspaces.verbs import Verb


def commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command of both floors and of the site, by dotted name."""
    for package in (workspaces.commands, runs.commands):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if (hasattr(value, "command") or hasattr(value, "site_command")) and value.__module__ == module.name:
                    yield f"{module.name}.{name}", value


COMMANDS = dict(commands())


def check_command(name: str, run: Callable[..., Any]) -> None:
    """The shape that callers, pages and the record rely on."""
    in_workspace = hasattr(run, "command")
    declared = run.command if in_workspace else run.site_command  # type: ignore[attr-defined]  # set by the decorator
    body = inspect.unwrap(run)
    first, *others = inspect.signature(body).parameters.values()
    hints = get_type_hints(body)
    assert hints[first.name] is (Draft if in_workspace else SiteDraft), f"{name} takes no draft of its event first"
    for parameter in others:
        assert parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD), f"{name} takes {parameter.name} by position"
        assert parameter.name in hints, f"{name} does not say what {parameter.name} is"
    assert hints.get("actor") is Actor, f"{name} takes no actor"
    assert "return" in hints, f"{name} does not say what it returns"
    assert isinstance(declared["verb"], Verb if in_workspace else SiteVerb), f"{name} has no verb of the list"
    if in_workspace and declared["needs"] is not None:
        assert isinstance(declared["needs"], Permission), f"{name} needs {declared['needs']!r}"
        assert declared["kind"] is None or isinstance(declared["kind"], Kind), f"{name} is of kind {declared['kind']!r}"
    if declared["needs"] is None:
        assert declared["by_system"] or len(declared["public_reason"]) > 10, f"{name} is open to everyone without a reason"


# What works in an archived workspace, and why. Whatever is not here raises Archived, by the one decorator that every command has.
IN_ARCHIVE = {
    "running work comes to its end": {
        "runs.commands.attempt.end_attempt",
        "runs.commands.attempt.fail_start",
        "runs.commands.attempt.mark_running",
        "runs.commands.cancel_many.cancel_any_runs",
        "runs.commands.cancel_many.cancel_own_runs",
        "runs.commands.cancel_many.end_cancelled_runs",
        "runs.commands.contract_check.conclude_check",
        "runs.commands.ending.add_outputs",
        "runs.commands.ending.finish_run",
        "runs.commands.ending.interrupt_attempt",
        "runs.commands.lost.declare_lost",
        "runs.commands.lost.record_orphan",
        "runs.commands.run.cancel_any_run",
        "runs.commands.run.cancel_run",
        "runs.commands.stranger.end_stranger",
    },
    "a run that was let go on keeps what it makes": {"runs.commands.memory.write_run_memory", "runs.commands.report.store_artifact"},
    "a run that was let go on may read what it rests on": {"runs.commands.memory_reading.read_run_memory"},
    "admission refuses it, with a certificate": {"runs.commands.launch._launch"},
    "taking a right away never waits": {
        "workspaces.commands.delegation.end_delegation",
        "workspaces.commands.invitation.revoke_invitation",
        "workspaces.commands.member.leave_workspace",
        "workspaces.commands.member.remove_member",
        "workspaces.commands.secret.revoke_secret",
        "workspaces.commands.share.revoke_share",
        "workspaces.commands.token.revoke_leaked_token",
        "workspaces.commands.token.revoke_token",
    },
    "what is shared stays readable, and who reads it is on record": {"workspaces.commands.share._record_read"},
    "a new key of the installation reaches every workspace": {"workspaces.commands.secret.rewrap_data_key"},
    "what an archive has lost has to be known": {"workspaces.commands.reconcile.record_files"},
    "an archive can be taken along": {
        f"runs.commands.export.{name}"
        for name in (
            "begin_export",
            "expire_export",
            "fail_export",
            "finish_export",
            "record_download",
            "remove_export",
            "request_export",
        )
    },
    "what was asked for before comes to its end": {"runs.commands.dataset_import.fail_import"},
    "what goes on in an archive is settled, and a count changes no balance": {
        "workspaces.commands.recount.recount_at_night",
        "workspaces.commands.recount.recount_ledger",
    },
    "nothing of a restored copy starts by itself": {"runs.commands.restored.hold_restored"},
    "it makes the archive": {"runs.commands.archive.archive_workspace"},
    "it ends the archive": {"runs.commands.archive.unarchive_workspace"},
}


def test_what_works_in_an_archive_is_on_the_list() -> None:
    said: dict[str, set[str]] = {}
    for name, run in COMMANDS.items():
        if hasattr(run, "command") and run.command["in_archive"]:
            said.setdefault(run.command["in_archive"], set()).add(name)
    assert said == IN_ARCHIVE, "a command that writes in an archived workspace needs a reason, here and where it is declared"


@pytest.mark.django_db(transaction=True)
def test_every_other_command_refuses_in_an_archive() -> None:
    """Each called for real in an archived workspace, by its owner or by labsite itself: the decorator refuses before the body asks for anything."""
    workspace, owner = make_workspace()
    wrote: dict[str, str] = {}
    with scope.open_workspace(workspace.pk):
        archive_workspace(actor=owner, reason="over", cancels_running=False)
        for name, run in COMMANDS.items():
            if not hasattr(run, "command") or run.command["in_archive"]:
                continue
            try:
                run(actor=Actor.system(job_id="test") if run.command["by_system"] else owner)
                wrote[name] = "nothing raised"
            except Archived:
                continue
            except Exception as fault:  # it got as far as its body
                wrote[name] = f"{type(fault).__name__}: {fault}"
    assert wrote == {}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_has_its_shape(name: str) -> None:
    check_command(name, COMMANDS[name])


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 20


@pytest.mark.parametrize("name", sorted(queue.JOBS))
def test_a_job_resolves_and_takes_ids(name: str) -> None:
    queued_in, dotted = queue.JOBS[name]
    module, _, function = dotted.rpartition(".")
    assert function == name, "a job takes its bell down by its own name"
    job = getattr(importlib.import_module(module), function)
    assert getattr(job, "is_job", False), f"{dotted} is not made by @job: it would run without scope"
    taken = inspect.signature(job, follow_wrapped=False).parameters
    assert set(taken) == {"workspace_id", "subject_id"}
    body = get_type_hints(inspect.unwrap(job))
    assert list(body.values())[:2] == [Actor, uuid.UUID]
    assert queued_in in settings.QUEUES


def test_verbs_are_nouns_with_past_tenses() -> None:
    for verb in (*Verb, *SiteVerb):
        noun, _, what = verb.value.partition(".")
        assert noun.replace("_", "").isalpha(), verb
        assert what.replace("_", "").isalpha(), verb
        assert len(verb.value) <= 60, f"{verb} does not fit its column"
