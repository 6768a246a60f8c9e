"""Room for so many launches and no more, and what must hold after many asked for it at once."""

from runs.commands.run import cancel_run
from runs.models import Run
from tests.drills_ground import Ground
from tests.factories_runs import HOUR
from workspaces.commands.limit import set_limit
from workspaces.models import LedgerAccount, Limit, Unit
from workspaces.queries.ledger import recount


class Race:
    """The week's GPU-hours of the workspace, set so that a number of launches of one hour each fit."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._reserved = 0

    def make_room(self, launches: int) -> None:
        with self._ground.looking():
            self._reserved = self._balance("reserved")
            amount = self._balance("reserved") + self._balance("spent") + launches * HOUR
            if Limit.objects.filter(unit=Unit.GPU_MS, window=Limit.Window.WEEK, mode=Limit.Mode.STOP, amount=amount).exists():
                return
            set_limit(
                actor=self._ground.laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=amount, mode=Limit.Mode.STOP,
                reason="room for the next round",
            )  # fmt: skip

    def faults(self, launches: int) -> str:
        """What is wrong after launches that fill the room; empty where nothing is."""
        with self._ground.looking():
            more = self._balance("reserved") - self._reserved
            if more != launches * HOUR:
                return f"{more} ms more are reserved instead of {launches * HOUR}"
            if self._balance("available") != 0:
                return f"{self._balance('available')} ms are left"
            return "; ".join(str(line) for line in recount())

    def clear(self) -> None:
        with self._ground.looking():
            for run in Run.objects.filter(status="queued"):
                cancel_run(actor=self._ground.laboratory.owner, run=run)

    def _balance(self, side: str) -> int:
        return sum(LedgerAccount.objects.filter(unit=Unit.GPU_MS, window="week", side=side).values_list("balance", flat=True))
