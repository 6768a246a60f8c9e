"""Records of holdouts in what is trained on: found by a job, shown with where they stand, overruled by people; whatever the files hold."""

import json
import subprocess
import sys
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.conf import settings

from runs.commands.archive import archive_workspace
from runs.commands.overlap import ask_overlap_check, overrule_verdict, set_reusable
from runs.jobs import overlap as job
from runs.jobs import reading_process
from runs.jobs.overlap import check_overlap
from runs.models import OverlapCheck, RecordIndex, Ruling
from runs.overlap.method import METHOD
from runs.queries.overlap import has_work
from runs.queries.overlap_records import pairs_of
from runs.queries.verdict import Found, State, verdict_of
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, make_laboratory
from workspaces import scope, store
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.blob import receive_file, stored_bytes
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.limit import set_limit
from workspaces.models import AuditEvent, Blob, Dataset, DatasetFile, DatasetVersion, EventPayload, Limit, Unit
from workspaces.verbs import Verb

JSON = "application/json"
SYSTEM = Actor.system(job_id="test")
pytestmark = pytest.mark.django_db(transaction=True)

HEADER = "id,mean_radius,mean_texture,malignant\n"
HELD_OUT = [f"wdbc-{number},{17.99 + number},{10.38 * number},{number % 2}\n" for number in range(1, 41)]
TRAINED = [f"wdbc-{number},{11.21 + number},{9.41 * number},{number % 2}\n" for number in range(41, 141)]


def keep(actor: Actor, slug: str, content: str | bytes, *, role: str = "train", path: str = "table.csv") -> DatasetVersion:
    dataset = Dataset.objects.filter(slug=slug).first() or create_dataset(actor=actor, slug=slug)
    files = [receive_file(path, [content.encode() if isinstance(content, str) else content])]
    return import_dataset_version(actor=actor, dataset=dataset, role=role, files=files)


def work(lab: Laboratory) -> None:
    """Ring until there is nothing left."""
    for _ in range(60):
        if not has_work():
            return
        check_overlap(workspace_id=lab.workspace.pk.hex, subject_id=lab.workspace.pk.hex)
    raise AssertionError("the job does not come to an end")


@pytest.fixture
def lab() -> "Laboratory":
    return make_laboratory()


def test_a_planted_record_is_found_and_a_control_set_has_none(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        holdout = keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        planted = keep(lab.owner, "planted", HEADER + "".join([*TRAINED[:50], HELD_OUT[6], *TRAINED[50:]]))
        control = keep(lab.owner, "control", HEADER + "".join(TRAINED))
        assert verdict_of(planted).state == verdict_of(control).state == State.UNCHECKED
        assert not verdict_of(control).is_promotable
        work(lab)
        found, clean = verdict_of(planted), verdict_of(control)
        assert (found.state, found.reason) == (State.CONTAMINATED, "1 record of it stands in 1 version held out.")
        assert (clean.state, clean.reason) == (State.CLEAN, "None of its 100 records stands in 1 holdout version.")
        assert clean.is_promotable and not found.is_promotable
        assert verdict_of(holdout).state == State.CONTAMINATED
        check = OverlapCheck.objects.get(version=planted)
        (pair,) = check.pairs
        assert (pair["kind"], pair["record"]["number"], pair["holdout"]["number"]) == ("exact", 51, 7)


def test_windows_and_versions_meet_holdouts_that_come_later(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        trained = keep(lab.owner, "trained", HEADER + "".join([*TRAINED, HELD_OUT[0]]))
        work(lab)
        assert verdict_of(trained).reason == "There is no holdout here that it could meet."
        keep(lab.owner, "later", HEADER + "".join(HELD_OUT), role="holdout")
        assert verdict_of(trained).state == State.UNCHECKED
        work(lab)
        assert verdict_of(trained).state == State.CONTAMINATED


def test_what_is_nearly_the_same_is_suspicious_and_wants_a_person(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        near = keep(lab.owner, "near", HEADER + "".join([*TRAINED, HELD_OUT[2].replace("20.99", "20.9900001")]))
        work(lab)
        assert verdict_of(near).state == State.SUSPICIOUS
        assert not verdict_of(near).is_promotable
        (pair,) = pairs_of(OverlapCheck.objects.get(version=near))
        assert pair.kind == "near"
        assert [(one.name, one.mine, one.other) for one in pair.differences] == [("mean_radius", "20.9900001", "20.99")]


def test_done_twice_it_finds_the_same_and_changes_nothing_else(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        holdout = keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        planted = keep(lab.owner, "planted", HEADER + "".join([*TRAINED, HELD_OUT[0]]))
        work(lab)
        before, stored = list(OverlapCheck.objects.order_by("pk").values("pk", "exact", "near", "pairs")), Blob.objects.count()
        check_overlap(workspace_id=lab.workspace.pk.hex, subject_id=lab.workspace.pk.hex)  # a bell that rings for nothing
        job.read_version(SYSTEM, planted)
        job.compare_pairs(SYSTEM, [(planted, holdout)])
        ask_overlap_check(actor=lab.owner, version=planted)
        assert verdict_of(planted).state == verdict_of(holdout).state == State.UNCHECKED
        work(lab)
        assert list(OverlapCheck.objects.order_by("pk").values("pk", "exact", "near", "pairs")) == before
        assert Blob.objects.count() == stored, "the same hashes are the same file"
        assert RecordIndex.objects.filter(version=planted).count() == 1


def test_hashes_count_as_stored_bytes_and_a_full_store_does_not_keep_them_out(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        trained = keep(lab.owner, "trained", HEADER + "".join(TRAINED))
        used = stored_bytes()
        set_limit(actor=lab.owner, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=used, mode=Limit.Mode.STOP, reason="full")
        work(lab)
        index = RecordIndex.objects.select_related("blob").get(version=trained)
        assert index.records == 100
        assert stored_bytes() >= used + index.blob.bytes > used + 100 * 32


def test_people_overrule_with_a_reason_and_what_was_found_stays(lab: Laboratory) -> None:
    approver = make_member(lab.workspace, "approver", "ada")
    researcher = make_member(lab.workspace, "researcher", "rosa")
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        planted = keep(lab.owner, "planted", HEADER + "".join([*TRAINED, HELD_OUT[0]]))
        with pytest.raises(Refusal, match="no verdict to overrule yet"):
            overrule_verdict(actor=approver, version=planted, verdict="clean", reason="I know better.")
        work(lab)
        with pytest.raises(Denied):
            overrule_verdict(actor=researcher, version=planted, verdict="clean", reason="It is mine.")
        with pytest.raises(Refusal, match="Say why"):
            overrule_verdict(actor=approver, version=planted, verdict="clean", reason="  ")
        with pytest.raises(Refusal, match="contaminated"):
            set_reusable(actor=researcher, version=planted, is_reusable=True, reason="Public data.")
        overrule_verdict(actor=approver, version=planted, verdict="clean", reason="A calibration record that both may have.")
        known = verdict_of(planted)
        assert (known.state, known.checked, known.is_promotable) == (State.CLEAN, State.CONTAMINATED, True)
        assert "1 record of it stands" in known.checked_reason
        event = AuditEvent.objects.filter(verb=Verb.VERDICT_OVERRULED).latest("sequence")
        assert event.actor_label == approver.label
        set_reusable(actor=researcher, version=planted, is_reusable=True, reason="Public data.")
        assert verdict_of(planted).is_reusable is True
        # What a person said of one finding is not said of the next.
        keep(lab.owner, "another", HEADER + TRAINED[0], role="holdout")
        work(lab)
        assert verdict_of(planted).state == State.CONTAMINATED
        assert Ruling.objects.filter(version=planted).count() == 2


def test_a_word_on_one_holdout_is_no_word_on_another(lab: Laboratory) -> None:
    """Though the counts are the same: one holdout could not be compared, then another."""
    with scope.open_workspace(lab.workspace.pk):
        first = keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        place = store.local_path("local", lab.workspace.pk, DatasetFile.objects.get(version=first).blob.sha256)
        assert place is not None
        content = place.read_bytes()
        place.unlink()
        trained = keep(lab.owner, "trained", HEADER + "".join(TRAINED))
        work(lab)
        overrule_verdict(actor=lab.owner, version=trained, verdict="clean", reason="I compared it with held-out by hand.")
        assert verdict_of(trained).is_promotable
        event = AuditEvent.objects.filter(verb=Verb.VERDICT_OVERRULED).latest("sequence")
        assert EventPayload.objects.get(event=event).body["details"]["found"] == "0 contaminated, 0 suspicious, 1 unknown; 0 exact, 0 near"
        place.write_bytes(content)
        ask_overlap_check(actor=lab.owner, version=first)
        keep(lab.owner, "broken", b"no game at all", role="holdout", path="games.sgf")
        work(lab)
        known = verdict_of(trained)
        assert known.said_words == "0 contaminated, 0 suspicious, 1 unknown; 0 exact, 0 near"
        assert (known.state, known.is_promotable, known.ruling) == (State.UNKNOWN, False, None)
        assert known.lapsed is not None
    page = client_of(lab.owner).get(f"/workspaces/{lab.workspace.slug}/datasets/trained/").content.decode()
    assert "I compared it with held-out by hand." in page and "it holds no more" in page


def test_a_word_from_before_it_named_what_it_was_said_of_holds_no_more(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        planted = keep(lab.owner, "planted", HEADER + "".join([*TRAINED, HELD_OUT[0]]))
        clean = keep(lab.owner, "clean", HEADER + "".join(TRAINED))
        work(lab)
        with monkeypatch.context() as before:
            before.setattr(Found, "said", Found.words)
            overrule_verdict(actor=lab.owner, version=planted, verdict="clean", reason="A calibration record.")
            overrule_verdict(actor=lab.owner, version=clean, verdict="suspicious", reason="The same patients.")
        assert verdict_of(planted).state == State.CONTAMINATED
        assert verdict_of(clean).state == State.SUSPICIOUS, "nothing was found then, and nothing is now"


def test_asked_for_anew_while_it_is_compared_it_is_compared_again(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        one, other = (keep(lab.owner, name, HEADER + "".join(TRAINED)) for name in ("one", "other"))
        work(lab)
        for version in (one, other):
            ask_overlap_check(actor=lab.owner, version=version)
            check_overlap(workspace_id=lab.workspace.pk.hex, subject_id=lab.workspace.pk.hex)  # read
        asked = reading_process.ask

        def ask(request: dict[str, Any], *, seconds: float) -> reading_process.Answer:
            ask_overlap_check(actor=lab.owner, version=one)
            return asked(request, seconds=seconds)

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(job, "ask", ask)
            check_overlap(workspace_id=lab.workspace.pk.hex, subject_id=lab.workspace.pk.hex)
        assert not OverlapCheck.objects.filter(version=one, method=METHOD).exists(), "what was compared is not what was asked for since"
        assert verdict_of(other).state == State.CLEAN, "the others of the same go are kept"
        before = OverlapCheck.objects.get(version=one).checked_at
        work(lab)
        assert verdict_of(one).state == State.CLEAN
        assert OverlapCheck.objects.get(version=one).checked_at > before


def test_a_person_takes_their_word_back(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        clean = keep(lab.owner, "clean", HEADER + "".join(TRAINED))
        work(lab)
        with pytest.raises(Refusal, match="nothing to take back"):
            overrule_verdict(actor=lab.owner, version=clean, verdict="", reason="no")
        overrule_verdict(actor=lab.owner, version=clean, verdict="contaminated", reason="The same patients under other ids.")
        assert verdict_of(clean).state == State.CONTAMINATED
        overrule_verdict(actor=lab.owner, version=clean, verdict="", reason="They are other patients after all.")
        assert verdict_of(clean).state == State.CLEAN


def test_a_file_that_cannot_be_read_is_not_known_and_says_why(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        holdout = keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        broken = keep(lab.owner, "broken", b"no game at all", path="games.sgf")
        weights = keep(lab.owner, "weights", b"\x00\x01" * 500, path="weights.bin")
        work(lab)
        assert verdict_of(broken).state == State.UNKNOWN
        assert "games.sgf: there is no game tree in it" in OverlapCheck.objects.get(version=broken).reason
        assert verdict_of(weights).state == State.UNKNOWN
        assert OverlapCheck.objects.get(version=weights).reason.endswith(f"or rule: weights.bin of {weights.label}.")
        lost = keep(lab.owner, "lost", HEADER + TRAINED[3])
        path = store.local_path("local", lab.workspace.pk, DatasetFile.objects.get(version=lost).blob.sha256)
        assert path is not None
        path.unlink()
        work(lab)
        assert OverlapCheck.objects.get(version=lost, holdout=holdout).reason == "A file of it is no longer in the store."
        assert verdict_of(lost).state == State.UNKNOWN


@pytest.mark.parametrize("side", ["train", "holdout"])
@pytest.mark.parametrize("path", ["table.zip", "table.bin", "table", "table.yaml", "table.png"])
def test_a_holdout_in_a_file_that_is_not_read_is_never_clean(lab: Laboratory, side: str, path: str) -> None:
    """Whatever is within it meets nothing; a name of a picture makes none."""
    with scope.open_workspace(lab.workspace.pk):
        packed = BytesIO()
        with ZipFile(packed, "w") as archive:
            archive.writestr("table.csv", HEADER + "".join(HELD_OUT))
        hidden = packed.getvalue() if path.endswith(".zip") else (HEADER + "".join(HELD_OUT)).encode()
        one = keep(lab.owner, "hidden", hidden, role=side, path=path)
        other = keep(lab.owner, "seen", HEADER + "".join(HELD_OUT), role="train" if side == "holdout" else "holdout")
        work(lab)
        trained = one if side == "train" else other
        known = verdict_of(trained)
        assert (known.state, known.is_promotable) == (State.UNKNOWN, False)
        reason = OverlapCheck.objects.get(version=trained).reason
        assert "Upload a form that is read" in reason and f"{path} of {one.label}" in reason
        overrule_verdict(actor=lab.owner, version=trained, verdict="clean", reason="I have looked into it.")
        assert verdict_of(trained).is_promotable


def test_pictures_meet_pictures_and_nothing_else(lab: Laboratory) -> None:
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", picture + b"one", role="holdout", path="a.png")
        pictures = keep(lab.owner, "pictures", picture + b"two", path="b.png")
        same = keep(lab.owner, "same", picture + b"one", path="c.png")
        rows = keep(lab.owner, "rows", HEADER + "".join(TRAINED))
        work(lab)
        assert [verdict_of(version).state for version in (pictures, same, rows)] == [State.CLEAN, State.CONTAMINATED, State.UNKNOWN]
        assert OverlapCheck.objects.get(version=pictures).reason == "2 files were compared as a whole."


@pytest.mark.parametrize("code", ["import os; os.kill(os.getpid(), 9)", "raise SystemExit(3)", "import time; time.sleep(60)"])
def test_a_process_that_dies_is_a_verdict_and_no_dead_job(lab: Laboratory, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        trained = keep(lab.owner, "trained", HEADER + "".join(TRAINED))
        monkeypatch.setattr(reading_process, "MODULE", ["-c", code])
        monkeypatch.setattr(job, "READ_SECONDS", 2)
        work(lab)
        assert verdict_of(trained).state == State.UNKNOWN
        assert "Its records could not be read: " in OverlapCheck.objects.filter(version=trained).earliest("pk").reason
        monkeypatch.undo()
        for version in DatasetVersion.objects.all():
            ask_overlap_check(actor=lab.owner, version=version)
        work(lab)
        assert verdict_of(trained).state == State.CLEAN, "and it can be asked for anew"


def test_whoever_serves_pages_and_rings_bells_loads_no_numpy_and_no_store_of_buckets() -> None:
    """The process that reads does; a worker would keep it for ever."""
    assert not {"numpy", "datasketch", "scipy", "obstore"} & set(_loaded_by("import labsite.urls, runs.jobs.overlap, runs.jobs.tidy"))


def _loaded_by(code: str) -> list[str]:
    wanted = f"import django, sys; django.setup(); {code}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", wanted], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True, timeout=100)
    return found.stdout.split()


def test_nothing_is_read_in_an_archive(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "trained", HEADER + "".join(TRAINED))
        archive_workspace(actor=lab.owner, reason="over", cancels_running=False)
        assert not has_work()
        check_overlap(workspace_id=lab.workspace.pk.hex, subject_id=lab.workspace.pk.hex)
        assert not RecordIndex.objects.exists()


# --- Pages and API --------------------------------------------------------------------------------------------------------------------------


def test_pages_show_the_verdict_and_the_records_side_by_side(lab: Laboratory) -> None:
    client = client_of(lab.owner)
    hostile = '<script>alert(1)</script> and a sentence that is long enough to be prose, "quoted"'
    with scope.open_workspace(lab.workspace.pk):
        line = json.dumps({"q": hostile}) + "\n"
        keep(lab.owner, "held-out", line, role="holdout", path="held.jsonl")
        planted = keep(lab.owner, "planted", '{"q": "something else altogether"}\n' + line, path="trained.jsonl")
        work(lab)
        check = OverlapCheck.objects.get(version=planted)
    base = f"/workspaces/{lab.workspace.slug}"
    assert "contaminated" in client.get(f"{base}/datasets/").content.decode()
    page = client.get(f"{base}/datasets/planted/").content.decode()
    assert "1 record of it stands in 1 version held out." in page and f"{base}/overlaps/{check.public_id}/" in page
    shown = client.get(f"{base}/overlaps/{check.public_id}/").content.decode()
    assert shown.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2 and "<script>alert(1)" not in shown
    assert "record 2 of" in shown and "record 1 of" in shown
    answer = client.post(f"{base}/datasets/planted/versions/1/verdict/", {"verdict": "clean", "reason": "A template, no record."})
    assert (answer.status_code, answer["Location"]) == (303, f"{base}/datasets/planted/?version=1")
    page = client.get(f"{base}/datasets/planted/").content.decode()
    assert "A template, no record." in page and "Overruled" in page
    assert client.post(f"{base}/datasets/planted/versions/1/reuse/", {"is_reusable": "no", "reason": "Ours."}).status_code == 303
    assert client.post(f"{base}/datasets/planted/versions/1/check/").status_code == 303
    assert "unchecked" in client.get(f"{base}/datasets/planted/").content.decode()


def test_records_with_half_characters_are_shown_with_their_escapes(lab: Laboratory) -> None:
    client = client_of(lab.owner)
    line = b'{"q": "half \\ud800 of a character", "\\udfff": ["\\ud83d", 1]}\n'
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", line, role="holdout", path="held.jsonl")
        planted = keep(lab.owner, "planted", line, path="trained.jsonl")
        work(lab)
        check = OverlapCheck.objects.get(version=planted)
    base = f"/workspaces/{lab.workspace.slug}"
    for page in (f"{base}/datasets/planted/", f"{base}/overlaps/{check.public_id}/"):
        assert "\\ud800 of a character" in client.get(page).content.decode()


def test_the_api_says_the_same(lab: Laboratory) -> None:
    client = client_of(lab.owner)
    with scope.open_workspace(lab.workspace.pk):
        keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        keep(lab.owner, "planted", HEADER + "".join([*TRAINED, HELD_OUT[4]]))
        work(lab)
    base = f"/api/v1/workspaces/{lab.workspace.slug}"
    verdict = client.get(f"{base}/datasets/planted/versions/1/verdict").json()
    assert (verdict["verdict"], verdict["is_promotable"], verdict["is_overruled"]) == ("contaminated", False, False)
    (row,) = client.get(f"{base}/datasets/planted/versions/1/overlaps").json()["items"]
    assert (row["exact"], row["holdout_dataset_id"]) == (1, "ds_held-out")
    (pair,) = client.get(f"{base}/overlaps/{row['id']}").json()["pairs"]
    assert (pair["record"]["number"], pair["holdout"]["number"]) == (101, 5)
    ruled = client.post(
        f"{base}/datasets/planted/versions/1/verdict", {"verdict": "suspicious", "reason": "Perhaps."}, content_type=JSON
    ).json()
    assert (ruled["verdict"], ruled["checked"], ruled["overruled_by"]) == ("suspicious", "contaminated", "lab-owner")
    assert (
        client.post(f"{base}/datasets/planted/versions/1/verdict", {"verdict": "spotless", "reason": "x"}, content_type=JSON).status_code
        == 422
    )
    reuse = client.post(f"{base}/datasets/planted/versions/1/reuse", {"is_reusable": False, "reason": "Ours."}, content_type=JSON).json()
    assert reuse["is_reusable"] is False
    asked = client.post(f"{base}/datasets/planted/versions/1/overlaps", content_type=JSON)
    assert (asked.status_code, asked.json()["verdict"]) == (202, "unchecked")
