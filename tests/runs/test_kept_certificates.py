"""Certificates that labsite wrote in each form are decided again as they stand, word for word: the file holds facts and lines as the code of
their time gave them, and is never written anew."""

import json
from pathlib import Path
from typing import Any

import pytest

from runs.admission import decide
from runs.admission_facts import DECIDED, facts_from
from workspaces.canonical import plain

KEPT: list[dict[str, Any]] = json.loads((Path(__file__).parent / "kept_certificates.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kept", KEPT, ids=[f"form {kept['facts']['form']}: {kept['name']}" for kept in KEPT])
def test_it_is_decided_as_it_was(kept: dict[str, Any]) -> None:
    verdict = decide(facts_from(kept["facts"]))
    assert (verdict.answer, plain(verdict.as_json())) == (kept["answer"], kept["lines"])


def test_there_are_some_of_every_form_that_is_decided_upon() -> None:
    assert {kept["facts"]["form"] for kept in KEPT} == set(DECIDED)
