"""Which tests one process must have together, where several run them: what they share is slow to start, or made once.

pytest-xdist's own `--dist loadgroup` reads groups from marks; with pytest 9.2 it sees none (pytest-xdist 3.8.0), so ours go by the path.
"""

import re

from xdist.scheduler import LoadScopeScheduling

# One head of Ray for all of its tests; the bundles of one laboratory train on what they made before.
TOGETHER = re.compile(r"tests/(?:runs/(?:pools/)?test_(?:ray_(?!answers)|sweep_on_four_pools)|examples/(\w+)/)")


class Together(LoadScopeScheduling):
    """Groups first, the largest before the others, then test by test."""

    def _split_scope(self, nodeid: str) -> str:
        found = TOGETHER.match(nodeid)
        return nodeid if found is None else found[1] or "ray"
