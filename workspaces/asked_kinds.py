"""Kinds of requests: what an inbox says of each, who carries a decision out, and what becomes of the subject otherwise.

A kind is a file in a package that an app names as `approvals` (runs/approvals), and holds one `KIND`. What comes later is such a file more.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from django.apps import apps

from workspaces.access import Kind

Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an inbox shows of a request beside its title: lines of a checklist (workspaces.checklist), and sentences."""

    checks: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AsOfNow:
    """What would be asked at this moment: `content_hash` is what a vote is held against, `content` what it is told by."""

    content_hash: str
    content: Content


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the workspace by URL name and argument, shown to those who may see what it is about."""

    name: str
    argument: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands behind a request: the policy that asked, with its decision, both empty where a person asked; and pages by the key of the content
    that they tell of."""

    policy: str = ""
    decision: int = 0
    policy_page: Page | None = None
    decision_page: Page | None = None
    pages: dict[str, Page] = field(default_factory=dict)

    @classmethod
    def of_policy(cls, slug: str, number: int, decision: str, **pages: Page) -> "Behind":
        """`decision` is the public id of the decision with that number."""
        of_decision = Page("decision", decision, Kind.POLICY)
        return cls(slug, number, Page("policy", slug, Kind.POLICY), of_decision, {**pages, "put_forward_by": of_decision})

    def seen(self, sees: Callable[[Kind], bool]) -> "Behind":
        """Without the pages about kinds that the reader does not see."""
        policy_page, decision_page = (
            page if page is not None and sees(page.kind) else None for page in (self.policy_page, self.decision_page)
        )
        pages = {key: page for key, page in self.pages.items() if sees(page.kind)}
        return replace(self, policy_page=policy_page, decision_page=decision_page, pages=pages)


@dataclass(frozen=True, slots=True)
class AskedKind:
    """`name` is the subject type of its requests, `days` for how long one waits where the workspace says nothing else.

    `page` answers URL name and further arguments of the subject's page for (subject's key, content). `decide` is a command: it records the word
    and carries it out. `end` is a piece of a command: what becomes of the subject when its request ends without a decision; it gets the event,
    the request, the status that it ended in, and why in words. `choices`: of a question, which answers there are, none for one's own words; its
    `decide` takes an `answer` too. None: it is approved or refused. `without_rule`: what holds where the workspace has no rule for this kind, so
    that nobody is asked. `now` finds anew what `decide` holds the request against, so that its page can say before anybody decides that it is not
    what was asked any more; it writes nothing, and answers None where there is nothing to find.
    `behind` says which policy asked, and where things of the content have their pages.
    """

    name: str
    one: str
    many: str
    evidence: Callable[[Content], Evidence]
    decide: Callable[..., Any]
    end: Callable[..., None]
    page: Callable[[Any, Content], tuple[str, ...]]
    days: int = 7
    choices: Callable[[Content], list[str]] | None = None
    without_rule: str = ""
    now: Callable[[Any], AsOfNow | None] | None = None
    behind: Callable[[Any], Behind] | None = None


@functools.cache
def asked_kinds() -> dict[str, AskedKind]:
    """Every kind by name, in the order of their words."""
    found = []
    for config in apps.get_app_configs():
        package = getattr(config, "approvals", "")
        if package:
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
                found.append(importlib.import_module(f"{package}.{module.name}").KIND)
    return {kind.name: kind for kind in sorted(found, key=lambda kind: kind.many)}


def evidence_of(subject_type: str, content: Any) -> Evidence:
    """What the kind has to show; nothing of a kind that is not known any more, or of content that it cannot read."""
    kind = asked_kinds().get(subject_type)
    return kind.evidence(content) if kind is not None and isinstance(content, dict) else Evidence()


def choices_of(subject_type: str, content: Any) -> list[str] | None:
    """Answers to a question; None of what is approved or refused."""
    kind = asked_kinds().get(subject_type)
    if kind is None or kind.choices is None or not isinstance(content, dict):
        return None
    return kind.choices(content)


def page_of(subject_type: str, key: Any, content: Any) -> tuple[str, ...]:
    """URL name and arguments of the subject's page; empty where it has none."""
    kind = asked_kinds().get(subject_type)
    return kind.page(key, content) if kind is not None and isinstance(content, dict) else ()
