"""Contract checks: which stand, which are due, and what came of them."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from runs.lifecycle import TERMINAL
from runs.models import CheckResult, ContractCheck
from workspaces import kept_query
from workspaces.models import Contract, NotFound

SHOWN = 10
OF_CHECK = ("reference__subject_artifact", "reference__run", "set_by")
Status = CheckResult.Status


@dataclass(frozen=True, slots=True)
class Checked:
    """The check that stands for a contract version, with its newest results."""

    check: ContractCheck
    results: list[CheckResult]

    @property
    def last(self) -> CheckResult | None:
        """The newest that has said something."""
        return next((result for result in self.results if result.status != Status.RUNNING), None)

    @property
    def under_way(self) -> CheckResult | None:
        return next((result for result in self.results if result.status == Status.RUNNING), None)


def checked(contract: Contract | None) -> Checked | None:
    """None where no check stands."""
    if contract is None:
        return None
    check = kept_query.first(ContractCheck, ended_at__isnull=True, contract=contract, related=OF_CHECK)
    return Checked(check, results_of(check)) if check is not None else None


def standing() -> "QuerySet[ContractCheck]":
    return ContractCheck.objects.filter(ended_at=None).select_related(*OF_CHECK)


def results_of(check: ContractCheck) -> list[CheckResult]:
    """The newest first."""
    return kept_query.rows(CheckResult, contract_check=check, related=("run", "evaluation"), order_by=("-number",), limit=SHOWN)


def find_result(text: str) -> CheckResult:
    """With its check and everything that it is held against. Raises NotFound."""
    return CheckResult.objects.find(
        text,
        "run",
        "evaluation",
        "contract_check__contract__benchmark",
        "contract_check__reference__subject_artifact",
        "contract_check__set_by",
    )


def find_standing(contract: Contract | None) -> ContractCheck:
    """Raises NotFound where none stands."""
    found = standing().filter(contract=contract).first() if contract is not None else None
    if found is None:
        raise NotFound("contract check")
    return found


def due(now: datetime) -> "QuerySet[ContractCheck]":
    """Those that stand, are due and are not being measured."""
    under_way = CheckResult.objects.filter(contract_check=OuterRef("pk"), status=Status.RUNNING)
    rows = ContractCheck.objects.filter(ended_at=None, next_at__lte=now).exclude(Exists(under_way))
    return rows.select_related("contract__benchmark", "reference__run", "set_by").order_by("next_at")


def to_conclude() -> "QuerySet[CheckResult]":
    """Results whose run has ended."""
    return CheckResult.objects.filter(status=Status.RUNNING, run__status__in=sorted(TERMINAL)).order_by("created_at")


def has_work(now: datetime) -> bool:
    return due(now).exists() or to_conclude().exists()
