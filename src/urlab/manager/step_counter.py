"""How many steps a client has seen."""


class StepCounter:
    """Counts mj_steps (pushes in puppet mode) over a server's life; a session sees those since its hello or reset."""

    def __init__(self) -> None:
        self.total = 0
        self._last_reset = 0

    def add(self, steps: int = 1) -> None:
        """Steps were made."""
        self.total += steps

    def restart(self) -> None:
        """A reset, or a new play: everybody counts from here."""
        self._last_reset = self.total

    def between(self, start: int, end: int) -> int:
        """Steps from ``start`` or the last reset, whichever is later, to ``end`` (both former totals)."""
        return max(0, end - max(start, self._last_reset))
