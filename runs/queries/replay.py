"""Deciding again what certificates decided: the facts that one keeps must give its lines and its verdict, word for word (M5)."""

from collections.abc import Iterator

from runs.admission import Answer, decide
from runs.admission_facts import facts_from
from runs.models import Certificate
from workspaces.canonical import plain

VERDICTS = {
    Answer.PASS: Certificate.Verdict.ADMITTED,
    Answer.APPROVAL: Certificate.Verdict.APPROVAL,
    Answer.REFUSE: Certificate.Verdict.REFUSED,
}


def unlike_their_facts() -> Iterator[str]:
    """A sentence for each certificate of the open workspace that its own facts do not give again; one whose facts this version cannot read
    is said as well."""
    for certificate in Certificate.objects.order_by("pk").only("verdict", "lines", "facts").iterator(chunk_size=500):
        try:
            verdict = decide(facts_from(certificate.facts))
        except (ValueError, TypeError, KeyError) as fault:
            yield f"The facts of {certificate.public_id} cannot be decided upon: {fault}"
            continue
        if VERDICTS[verdict.answer] != certificate.verdict:
            yield f"{certificate.public_id} says {certificate.verdict}; its facts give {VERDICTS[verdict.answer].value}."
        elif plain(verdict.as_json()) != certificate.lines:
            yield f"{certificate.public_id} has other lines than its facts give."
