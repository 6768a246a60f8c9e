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
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft
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
