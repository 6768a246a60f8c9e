"""LABSITE_REGIONS: which regions there are, and what is said of one that cannot be."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from labsite.doctor import SITE_CHECKS
from labsite.regions import missing_regions, read_regions
from tests.factories import make_workspace
from workspaces.bucket import Bucket

OWN, RUNS = Path("/srv/labsite/store/local"), Path("/var/lib/labsite")


def read(text: str, **told: str) -> dict[str, Path | Bucket]:
    return read_regions(text, own=OWN, closed=[RUNS], home=Path("/srv/labsite"), told=told)


def test_local_is_always_there_and_may_be_moved() -> None:
    assert read("") == {"local": OWN}
    assert read(" eu=/srv/eu, us=/srv/us ,") == {"local": OWN, "eu": Path("/srv/eu"), "us": Path("/srv/us")}
    assert read("local=/srv/big") == {"local": Path("/srv/big")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("eu", "is no name=folder"),
        ("EU=/srv/eu", "is no name=folder"),
        ("../eu=/srv/eu", "is no name=folder"),
        ("eu=srv/eu", "not a whole path"),
        ("eu=", "not a whole path"),
        ("eu=/srv/a,eu=/srv/b", "eu is named twice"),
        ("eu=/srv/a,us=/srv/a", "lies in that of"),
        ("eu=/srv/a,us=/srv/a/../a/us", "us lies in that of eu"),
        ("eu=/srv/labsite/store", "local lies in that of eu"),
        ("eu=/var/lib/labsite/eu", "must lie outside of /var/lib/labsite"),
        ("eu=/var/lib", "must lie outside of /var/lib/labsite"),
        ("eu=s3://", "is no s3://bucket/prefix"),
        ("eu=s3://b/x", "is no s3://bucket/prefix"),
        ("eu=s3://lab/../x", "is no s3://bucket/prefix"),
        ("eu=s3://lab/a,us=s3://lab/a/b", "us lies in that of eu"),
        ("eu=s3://lab/a,us=s3://lab", "eu lies in that of us"),
    ],
)
def test_what_cannot_be_a_region_is_said(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(text)


def test_a_bucket_has_its_endpoint_from_the_environment_and_its_keys_from_a_file_of_the_home() -> None:
    told = {"LABSITE_S3_EU_WEST_ENDPOINT": "http://127.0.0.1:9000/", "LABSITE_S3_EU_WEST_REGION": "eu-west-1"}
    (_, (name, bucket)) = read("eu-west=s3://lab-files/one/two/", **told).items()
    assert isinstance(bucket, Bucket)
    assert (name, bucket.bucket, bucket.prefix, bucket.endpoint, bucket.region) == (
        "eu-west", "lab-files", "one/two", "http://127.0.0.1:9000", "eu-west-1",
    )  # fmt: skip
    assert (bucket.keys_file, bucket.local) == (Path("/srv/labsite/keys/s3.eu-west"), Path("/srv/labsite/store/eu-west.s3"))
    with pytest.raises(ValueError, match="without a path or keys"):
        read("eu=s3://lab", LABSITE_S3_EU_ENDPOINT="https://key:secret@s3.example.org")


def test_two_regions_that_are_one_folder_by_a_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "eu").mkdir()
    (tmp_path / "us").symlink_to(tmp_path / "eu")
    with pytest.raises(ValueError, match="lies in that of"):
        read(f"eu={tmp_path / 'eu'},us={tmp_path / 'us'}")


def test_a_disk_that_is_not_mounted_is_missing_and_a_new_home_is_not(tmp_path: Path) -> None:
    (tmp_path / "home" / "store").mkdir(parents=True)
    regions = {"local": tmp_path / "home" / "store" / "local", "eu": tmp_path / "eu"}
    assert missing_regions(regions, home=tmp_path / "home") == ["eu"]
    (tmp_path / "eu").mkdir()
    assert missing_regions(regions, home=tmp_path / "home") == []


@pytest.mark.django_db
def test_readyz_and_doctor_name_what_is_missing(settings: Any, client: Client, tmp_path: Path) -> None:
    settings.LABSITE_REGIONS = {"local": tmp_path, "eu": tmp_path.parent / "not-mounted"}
    make_workspace("lab", region="eu")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["missing"]) == (503, "store eu")
    assert list(SITE_CHECKS["regions"]()) == [f"The folder of the region eu is not there: {tmp_path.parent / 'not-mounted'}."]
    settings.LABSITE_REGIONS = {"local": tmp_path}
    assert client.get("/readyz").status_code == 200
    assert list(SITE_CHECKS["regions"]()) == ["The files of lab lie in the region eu, which LABSITE_REGIONS does not name."]
