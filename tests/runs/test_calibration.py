"""Errors of calibration, by hand and as published."""

import pytest

from runs.calibration import expected_calibration_error


@pytest.mark.parametrize(
    ("answers", "bins", "error"),
    [
        # TorchMetrics, binary_calibration_error, the example of its documentation: 0.2900 with two bins.
        ([(0.25, False), (0.25, False), (0.55, True), (0.75, True), (0.75, True)], 2, 0.29),
        # By hand: |0.5 - 0.95| * 2/4 + |1 - 0.55| * 1/4 + |0 - 0.65| * 1/4.
        ([(0.95, True), (0.95, False), (0.55, True), (0.65, False)], 10, 0.5),
        # On a border an answer belongs to the bin below: 0.7 and 0.65 share one of ten bins, so that their gaps meet.
        ([(0.7, True), (0.65, False)], 10, abs(1 - 0.7 - 0.65) / 2),
        ([(1.0, True), (0.0, False)], 15, 0.0),
    ],
)
def test_calibration_errors(answers: list[tuple[float, bool]], bins: int, error: float) -> None:
    assert expected_calibration_error(answers, bins) == pytest.approx(error, abs=1e-12)


def test_without_an_answer_there_is_no_calibration() -> None:
    assert expected_calibration_error([], 10) is None
