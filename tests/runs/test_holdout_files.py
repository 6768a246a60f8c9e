"""A holdout that admission refuses is in no folder of any run: neither of the run that named it, which is none, nor of its neighbour."""

from pathlib import Path
from typing import Any

import pytest

from runs.models import Run
from tests.factories_registry import TABLE, make_dataset_version
from tests.factories_runs import drive, launch, make_laboratory
from tests.runs.attempts import WAITS, folder_of, let_go, started
from workspaces.audit import Refusal

PLANTED = b"question,answer\nplanted-holdout-record,42\n"


def holds(content: bytes, folder: Path) -> bool:
    """Does any file below a folder hold it, wherever in it?"""
    return any(content in path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.django_db(transaction=True)
def test_a_refused_holdout_is_in_no_run_folder(settings: Any) -> None:
    laboratory = make_laboratory(code=WAITS)
    with laboratory.opened():
        make_dataset_version(laboratory.owner, "unseen", role="holdout", content=PLANTED)
        make_dataset_version(laboratory.owner, "renamed", content=PLANTED)
        for named in ("unseen", "renamed"):
            with pytest.raises(Refusal, match="Leave the holdout out"):
                launch(laboratory, datasets=("table", named))
        assert not Run.objects.exists()
    run, attempt = started(laboratory)
    try:
        assert holds(TABLE, folder_of(laboratory, attempt)), "what was admitted is there, so that what is not there could have been found"
        assert not holds(b"planted-holdout-record", Path(settings.LABSITE_RUNS) / "runs")
    finally:
        let_go(laboratory, run)
    assert drive(laboratory, run).status == "succeeded"
