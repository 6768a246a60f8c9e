"""What an agent version says that it needs: read from lines, and shared out over what a run is given."""

import pytest

from workspaces.agent_inputs import Given, Need, listed, need_of, unmet

TRAIN, HOLDOUT, MODEL = Need("dataset", "train"), Need("dataset", "holdout"), Need("artifact", "model")


def dataset(role: str, *names: str) -> Given:
    return Given(f"{role}@1", "dataset", role, names)


def test_lines_of_the_form() -> None:
    assert need_of("dataset train") == TRAIN
    assert need_of("artifact  model optional") == Need("artifact", "model", required=False)
    assert need_of("dataset named self-play") == Need("dataset", name="self-play")
    assert need_of("dataset holdout named exam optional") == Need("dataset", "holdout", "exam", required=False)


@pytest.mark.parametrize("line", ["data", "dataset train holdout", "model", "optional", "dataset named a b"])
def test_a_line_that_says_something_else_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=line):
        need_of(line)


def test_kind_role_and_name_have_to_fit() -> None:
    assert unmet([TRAIN], []) == [TRAIN]
    assert unmet([TRAIN], [dataset("holdout")]) == [TRAIN]
    assert unmet([TRAIN], [dataset("any")]) == []  # a version of any role may be used for every one
    assert unmet([MODEL], [dataset("train"), Given("x", "artifact", "any")]) == [MODEL]
    assert unmet([Need("artifact")], [Given("x", "artifact", "control")]) == []
    assert unmet([Need("dataset", name="self-play")], [dataset("train", "self-play-window-3", "self-play")]) == []
    assert unmet([Need("dataset", name="self-play")], [dataset("train", "table")]) == [Need("dataset", name="self-play")]


def test_two_needs_want_two_inputs_however_they_are_shared_out() -> None:
    assert unmet([MODEL, MODEL], [Given("x", "artifact", "model")]) == [MODEL]
    # The first need would take what alone meets the second.
    assert unmet([Need("dataset"), TRAIN], [dataset("train"), dataset("holdout")]) == []
    assert unmet([Need("dataset"), TRAIN, HOLDOUT], [dataset("any"), dataset("train")]) == [HOLDOUT]


def test_what_is_optional_is_missed_by_nobody() -> None:
    assert unmet([Need("dataset", "validation", required=False)], []) == []


def test_in_words() -> None:
    assert listed([TRAIN]) == "a dataset of role train"
    assert listed([TRAIN, Need("dataset", name="self-play"), MODEL]) == (
        "a dataset of role train, the dataset self-play and an artifact of kind model"
    )
