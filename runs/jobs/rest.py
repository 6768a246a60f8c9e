"""A rest between looks, so that bells rung by the dozen are heard as one."""

import time


class Rest:
    """Of one worker process, which has one job at a time; no look is held up for longer than `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over_at = 0.0  # on the monotonic clock

    def earn(self) -> None:
        """Said by a look that was in vain."""
        self._over_at = time.monotonic() + self._seconds

    def take(self) -> None:
        """Wait until it is over."""
        left = self._over_at - time.monotonic()
        if left > 0:
            time.sleep(min(left, self._seconds))
