"""An import whose process is killed: nothing half-imported, nothing lost; begun again it is whole, once, or says that it was given up."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured

from runs.commands.dataset_import import WantedFile, request_import
from runs.jobs.dataset_import import read_import
from runs.models import DatasetImport
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.file_server import FileServer
from tests.runs.test_s3_import import KEYS, endpoint, put
from workspaces import store
from workspaces.commands.dataset import create_dataset
from workspaces.commands.secret import create_secret
from workspaces.models import Blob, Dataset, DatasetFile, DatasetVersion

__all__ = ["endpoint"]  # a fixture
pytestmark = pytest.mark.django_db(transaction=True)
FILES = {"a.csv": b"a,b\n1,2\n", "b.bin": b"0123456789abcdef" * 200_000}

KILLED = """
import os, signal, sys
import django
django.setup()
from runs.commands import dataset_import as commands
from runs.jobs import dataset_import as job
point = sys.argv[3]
told, freeze, finish = job._told, commands.freeze, job.finish_import
def die(*given, **more):
    os.kill(os.getpid(), signal.SIGKILL)
def tell(asked, number, chunks):
    for chunk in told(asked, number, chunks):
        yield chunk
        if number == 2:
            die()
if point == "reading":
    job._told = tell
elif point == "stored":
    job.finish_import = die
elif point == "frozen":
    commands.freeze = lambda *given, **more: (freeze(*given, **more), die())
elif point == "finished":
    job.finish_import = lambda **given: (finish(**given), die())
job.read_import(workspace_id=sys.argv[1], subject_id=sys.argv[2])
"""


@pytest.fixture
def laboratory(settings: Any, tmp_path: Path) -> Laboratory:
    settings.LABSITE_REGIONS = {"local": tmp_path / "store"}
    settings.IMPORTS = tmp_path / "imports"
    settings.IMPORT_FOLDERS = [f"local:{tmp_path / 'data'}"]
    (tmp_path / "data").mkdir()
    for name, content in FILES.items():
        (tmp_path / "data" / name).write_bytes(content)
    made = make_laboratory()
    with made.opened():
        create_dataset(actor=made.owner, slug="brought", origin="external", licence="CC0-1.0")
    return made


def ask(laboratory: Laboratory, tmp_path: Path) -> DatasetImport:
    files = [WantedFile(f"pool://local{tmp_path}/data/{name}") for name in FILES]
    with laboratory.opened():
        return request_import(actor=laboratory.owner, dataset=Dataset.objects.get(slug="brought"), role="train", files=files)


@contextmanager
def over(source: str, laboratory: Laboratory, request: pytest.FixtureRequest) -> Iterator[DatasetImport]:
    """An import of FILES that is asked for, from another machine that answers while the block lasts."""
    dataset: dict[str, Any] = {"dataset": Dataset.objects.get(slug="brought"), "role": "train"}
    if source == "https":
        server = FileServer()
        server.files = {f"/{name}": content for name, content in FILES.items()}
        with server.running():
            configured.IMPORT_HOSTS = [f"127.0.0.1:{server.port}"]
            files = [WantedFile(f"{server.base}/{name}") for name in FILES]
            yield request_import(actor=laboratory.owner, files=files, **dataset)
        return
    endpoint = request.getfixturevalue("endpoint")
    configured.IMPORT_HOSTS = [endpoint.removeprefix("http://")]
    for name, content in FILES.items():
        put(endpoint, f"killed/{name}", content)
    secret = create_secret(actor=laboratory.owner, name="BUCKET", value=f"{KEYS.access_key_id}:{KEYS.secret_access_key}")
    files = [WantedFile(f"s3://data/killed/{name}") for name in FILES]
    yield request_import(actor=laboratory.owner, files=files, secret=secret, endpoint=endpoint, **dataset)


@pytest.mark.parametrize("source", ["https", "s3"])
@pytest.mark.parametrize("point", ["reading", "frozen"])
def test_killed_while_it_reads_from_another_machine_it_left_nothing_and_is_made_once(
    laboratory: Laboratory, tmp_path: Path, settings: Any, request: pytest.FixtureRequest, source: str, point: str
) -> None:
    settings.IMPORT_HOSTS = []
    with laboratory.opened(), over(source, laboratory, request) as asked:
        killed_at(point, laboratory, asked)
        asked.refresh_from_db()
        assert (asked.status, asked.tries, asked.version) == ("running", 1, None)
        assert not DatasetVersion.objects.filter(dataset__slug="brought").exists()
        done = again(laboratory, asked)
        assert (done.status, done.tries, done.failure) == ("done", 2, "")
        assert DatasetVersion.objects.filter(dataset__slug="brought").count() == 1
    assert rows(laboratory) == {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}


def killed_at(point: str, laboratory: Laboratory, asked: DatasetImport) -> None:
    """The job in a process of its own, which kills itself there."""
    program = "from pathlib import Path\nfrom django.conf import settings\n"
    program += f"settings.DATABASES['default']['NAME'] = {configured.DATABASES['default']['NAME']!r}\n"
    program += "".join(
        f"settings.{name} = Path({str(getattr(configured, name))!r})\n" for name in ("IMPORTS", "CHECKPOINTS", "LABSITE_RUNS")
    )
    program += f"settings.IMPORT_FOLDERS = {configured.IMPORT_FOLDERS!r}\n"
    program += f"settings.IMPORT_HOSTS = {configured.IMPORT_HOSTS!r}\n"
    program += f"settings.LABSITE_REGIONS = {{'local': Path({str(configured.LABSITE_REGIONS['local'])!r})}}\n"
    done = subprocess.run(
        [sys.executable, "-c", program + KILLED, laboratory.workspace.pk.hex, asked.pk.hex, point],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "labsite.settings"},
        cwd=configured.BASE_DIR, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr[-1000:]


def again(laboratory: Laboratory, asked: DatasetImport) -> DatasetImport:
    read_import(workspace_id=laboratory.workspace.pk.hex, subject_id=asked.pk.hex)
    with laboratory.opened():
        return DatasetImport.objects.select_related("version").get(pk=asked.pk)


def rows(laboratory: Laboratory) -> dict[str, str]:
    """Files of the dataset's versions, and that their bytes lie in the store as their rows say."""
    with laboratory.opened():
        found = {
            file.path: file.blob.sha256 for file in DatasetFile.objects.filter(version__dataset__slug="brought").select_related("blob")
        }
        for sha256 in found.values():
            content = b"".join(store.open("local", laboratory.workspace.pk, sha256))
            assert hashlib.sha256(content).hexdigest() == sha256
    return found


@pytest.mark.parametrize("point", ["reading", "stored", "frozen"])
def test_killed_before_its_end_it_left_nothing_and_is_made_once(laboratory: Laboratory, tmp_path: Path, point: str) -> None:
    with laboratory.opened():
        blobs = Blob.objects.count()
    asked = ask(laboratory, tmp_path)
    killed_at(point, laboratory, asked)
    with laboratory.opened():
        asked.refresh_from_db()
        assert (asked.status, asked.tries, asked.version) == ("running", 1, None)
        assert not DatasetVersion.objects.filter(dataset__slug="brought").exists()
        assert Blob.objects.count() == blobs
    assert len(list((tmp_path / "store").glob("*/incoming/*"))) == (1 if point == "reading" else 0)
    done = again(laboratory, asked)
    assert (done.status, done.tries, done.failure) == ("done", 2, "")
    assert rows(laboratory) == {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    with laboratory.opened():
        assert DatasetVersion.objects.filter(dataset__slug="brought").count() == 1


def test_killed_after_its_end_it_is_not_made_twice(laboratory: Laboratory, tmp_path: Path) -> None:
    asked = ask(laboratory, tmp_path)
    killed_at("finished", laboratory, asked)
    done = again(laboratory, asked)
    assert (done.status, done.tries) == ("done", 1)
    with laboratory.opened():
        assert DatasetVersion.objects.filter(dataset__slug="brought").count() == 1
    assert set(rows(laboratory)) == set(FILES)


def test_one_that_kills_whoever_reads_it_is_given_up_with_a_sentence(laboratory: Laboratory, tmp_path: Path) -> None:
    asked = ask(laboratory, tmp_path)
    for _ in range(3):
        killed_at("reading", laboratory, asked)
    given_up = again(laboratory, asked)
    assert given_up.status == "failed"
    assert "ended 3 times" in given_up.failure
    assert rows(laboratory) == {}
