"""The statement of a promotion: an in-toto Statement v1 (in-toto.io/Statement/v1) whose predicate is a verification summary of SLSA
(slsa.dev/verification_summary/v1). Pure: values in, canonical JSON out."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from runs.eligibility import Fact

STATEMENT = "https://in-toto.io/Statement/v1"
SUMMARY = "https://slsa.dev/verification_summary/v1"
LEVEL = "LABSITE_PROMOTION_CHECKS"  # a level of our own: names that begin with SLSA_ belong to SLSA


@dataclass(frozen=True, slots=True)
class Rested:
    """Something that the decision rests on; `sha256` is the hash that the audit record, or the row itself, has of it."""

    kind: str
    key: uuid.UUID
    sha256: str


@dataclass(frozen=True, slots=True)
class Promoted:
    """What is stated: file `path` with its hash was promoted as `name` at `at`, on `facts` that all held, and rests on `rests_on`."""

    promotion: uuid.UUID
    artifact: uuid.UUID
    name: str
    path: str
    sha256: str
    at: datetime
    facts: Sequence[Fact]
    policy_sha256: str
    rests_on: Sequence[Rested]


def statement(promoted: Promoted, *, verifier: str, version: str) -> bytes:
    """`verifier` is the URI of who states it, `version` that of labsite."""
    return json.dumps(_statement(promoted, verifier, version), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def policy(facts: Sequence[Fact]) -> list[list[str]]:
    """What was demanded: each check with what it requires. Its hash is in the statement."""
    return [[fact.key, fact.name, fact.required] for fact in facts]


def _statement(promoted: Promoted, verifier: str, version: str) -> dict[str, Any]:
    return {
        "_type": STATEMENT,
        "subject": [{"name": promoted.path, "digest": {"sha256": promoted.sha256}}],
        "predicateType": SUMMARY,
        "predicate": {
            "verifier": {"id": verifier, "version": {"labsite": version}},
            "timeVerified": promoted.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "resourceUri": _uri("artifact", promoted.artifact),
            "policy": {"uri": "urn:labsite:promotion-checks", "digest": {"sha256": promoted.policy_sha256}},
            "inputAttestations": [{"uri": _uri(one.kind, one.key), "digest": {"sha256": one.sha256}} for one in promoted.rests_on],
            "verificationResult": "PASSED",
            "verifiedLevels": [LEVEL],
            "slsaVersion": "1.0",
            # Fields of our own; readers of the predicate pass over what they do not know.
            "labsite_promotion": {
                "id": promoted.promotion.hex,
                "name": promoted.name,
                "checks": [{key: fact.agreed[key] for key in ("key", "verdict", "observed", "required")} for fact in promoted.facts],
            },
        },
    }


def _uri(kind: str, key: uuid.UUID) -> str:
    return f"urn:labsite:{kind}:{key}"
