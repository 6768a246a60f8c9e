"""How long until a page answers: `make bench BENCH=start_times`. First start in an empty folder, then the second.

The environment is installed; the example laboratory is made or not by LABSITE_EXAMPLES, here not. The ratio says what the first start costs
over the second, on the same machine in the same minute. Targets: 45 s and 10 s.
"""

import signal
import time
import urllib.request

from tests.installation import Installation
from tests.targets import judged, leave


def started(labsite: Installation) -> float:
    """Seconds from `manage.py up` to the first answered page."""
    begun = time.monotonic()
    labsite.start()
    with urllib.request.urlopen(f"{labsite.url}/accounts/login/", timeout=30) as answer:  # noqa: S310  # the address is ours, on loopback
        assert answer.status == 200
    return time.monotonic() - begun


def main() -> None:
    labsite = Installation()
    try:
        first = started(labsite)
        assert labsite.end(signal.SIGINT) == 0
        second = started(labsite)
    finally:
        labsite.__exit__(None, None, None)
    for name, found, target in (("first start -> page", first, 45), ("second start -> page", second, 10)):
        print(f"{name:34} {found:8.1f} s     target {target} s: {judged(name, found <= target)}")
    print(f"{'first start / second start':34} {first / second:8.1f}")


if __name__ == "__main__":
    main()
    leave()
