"""From the rate at which a policy was trained to the rate of control."""

import math

CONTROL_HZ = 30.0
_NEAR = 1e-9


def shares(rows: int, row_hz: float, control_hz: float = CONTROL_HZ) -> list[list[tuple[int, float]]]:
    """For every control step the rows that it covers, each with the part of the row that falls into it.

    All parts of a row add up to 1, so deltas that are shared out this way come to the same motion in the same time.
    """
    steps = math.ceil(rows * control_hz / row_hz - _NEAR)
    ratio = row_hz / control_hz
    covered = []
    for step in range(steps):
        begin, end = step * ratio, min((step + 1) * ratio, rows)
        touched = range(math.floor(begin + _NEAR), math.ceil(end - _NEAR))
        covered.append([(row, min(end, row + 1) - max(begin, row)) for row in touched])
    return covered


def last_rows(rows: int, row_hz: float, control_hz: float = CONTROL_HZ) -> list[int]:
    """For every control step the row that is due at its end: how absolute targets are sampled."""
    return [covered[-1][0] for covered in shares(rows, row_hz, control_hz)]
