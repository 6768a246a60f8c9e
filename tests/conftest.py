"""Tests run in the application's own role on a real PostgreSQL; the owner only makes, empties and removes the test database."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.template import engines
from django.test.utils import override_settings, setup_databases, teardown_databases

from labsite.owner import as_owner
from runs.jobs import lanes
from tests.parallel import Together


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest,
    django_test_environment: None,
    django_db_modify_db_settings: None,  # a database for each parallel process
    django_db_blocker: Any,
    django_db_keepdb: bool,
    django_db_createdb: bool,
) -> Iterator[None]:
    """Overrides pytest-django's: makes and removes the test database as the owner role."""
    with django_db_blocker.unblock(), as_owner():
        made = setup_databases(verbosity=0, interactive=False, keepdb=django_db_keepdb and not django_db_createdb)
    yield
    if not django_db_keepdb:
        with django_db_blocker.unblock(), as_owner():
            teardown_databases(made, verbosity=0)


@pytest.fixture(scope="session", autouse=True)
def plain_static(django_test_environment: None) -> Iterator[None]:
    """Addresses of static files without the manifest of `collectstatic`, which tests do not need."""
    storages = {**settings.STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
    with override_settings(STORAGES=storages):
        yield


@pytest.fixture(autouse=True)
def checkpoints(tmp_path: Path) -> Iterator[Path]:
    """Checkpoints of the test's own: the tables are emptied after it, and what was sealed of them would be missing in the next one."""
    with override_settings(CHECKPOINTS=tmp_path / "checkpoints"):
        yield tmp_path / "checkpoints"


@pytest.fixture(scope="session", autouse=True)
def no_idle_lanes() -> None:
    """Threads of lanes keep no connection between tests: a database that is still in use cannot be removed."""
    lanes.IDLE_SECONDS = 0.0


class NoSuchVariable(str):
    """Stands in for a variable that a template names and nobody gives: rendering it fails. (`if` and `default_if_none` may ask freely.)"""

    __slots__ = ()

    def __contains__(self, item: object) -> bool:
        return item == "%s"

    def __mod__(self, name: object) -> str:
        raise LookupError(f"a template names {name}, which is not there")


@pytest.fixture(scope="session", autouse=True)
def strict_templates(django_test_environment: None) -> Iterator[None]:
    """Our own templates and allauth's render with every variable given."""
    # In the settings as well: a test that overrides DEBUG or the like makes Django build the engine anew.
    options: Any = settings.TEMPLATES[0]["OPTIONS"]
    options["string_if_invalid"] = NoSuchVariable("%s")
    engine = engines["django"].engine  # type: ignore[attr-defined]  # Django's own back-end
    engine.string_if_invalid = NoSuchVariable("%s")
    yield
    engine.string_if_invalid = ""
    del options["string_if_invalid"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Where every engine is said to be there (LABSITE_REQUIRE=all), a skipped test is a failure."""
    report = yield
    if report.skipped and os.environ.get("LABSITE_REQUIRE") == "all":
        report.outcome = "failed"
        report.longrepr = f"skipped although LABSITE_REQUIRE=all: {report.longrepr}"
    return report
