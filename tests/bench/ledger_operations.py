"""Random operations on one ledger, then the count from zero: `make bench BENCH=ledger_operations ARGS="[operations] [seed]"`.

Reserving, settling, cancelling, moving into the next window and entering spend from outside, over some years of weeks and months, with limits
that change. At the end every balance must be the sum of its entries, to the unit, and the sum of all balances 0.
"""

import random
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.installation import Installation

BATCH = 40  # operations in one command
START = datetime(2099, 1, 7, 12, tzinfo=UTC)  # after whatever month the limit on months, set now, begins to keep


def main(operations: int, seed: int) -> bool:
    with Installation():
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from tests.factories import make_workspace  # noqa: PLC0415
        from tests.factories_resources import in_one  # noqa: PLC0415
        from tests.workspaces.test_ledger import HOUR, Chance, weekly  # noqa: PLC0415
        from workspaces import scope  # noqa: PLC0415
        from workspaces.commands.limit import set_limit  # noqa: PLC0415
        from workspaces.commands.recount import recount_ledger  # noqa: PLC0415
        from workspaces.models import Limit, Unit  # noqa: PLC0415

        workspace, owner = make_workspace("bench", zone="Europe/Berlin")
        chance = Chance(random.Random(seed), START)  # noqa: S311  # a reproducible order, no secret
        began = time.monotonic()
        with scope.open_workspace(workspace.pk):
            weekly(owner, 50)
            set_limit(actor=owner, unit=Unit.API_MICROS, window=Limit.Window.MONTH, amount=400 * HOUR, mode=Limit.Mode.WARN)
            for start in range(0, operations, BATCH):
                in_one(actor=owner, body=some(chance, min(BATCH, operations - start)))
                if start % (BATCH * 10) == BATCH * 9:
                    weekly(owner, 20 + start // BATCH, reason="another amount")
            counted = recount_ledger(actor=owner)
        done = ", ".join(f"{count:,} {act}" for act, count in sorted(chance.done.items()))
        print(f"{sum(chance.done.values()):,} operations ({done}) in {time.monotonic() - began:.0f} s, seed {seed}")
        print(f"{counted.entries:,} entries against {counted.accounts:,} accounts: {len(counted.wrong)} balances differ")
        return counted.is_right


def some(chance: Any, count: int) -> Callable[[Any], None]:
    """So many operations, in one command."""

    def body(event: Any) -> None:
        for _ in range(count):
            chance.act(event)

    return body


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:3]]
    sys.exit(0 if main(*(asked + [10_000, 1][len(asked) :])) else 1)
