"""The installation's key is replaced while secrets are read and made: nothing fails, everything ends under one key, the old one is gone."""

import json
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import override_settings

from labsite.keys import SecretsKeys
from tests.factories import make_user, make_workspace
from tests.factories_secrets import CANARY, PLAIN
from workspaces import scope
from workspaces.access import Actor, SiteRole
from workspaces.commands.secret import create_secret, rewrap_data_key
from workspaces.models import AuditEvent, DataKey, EventPayload, Installation, Secret, SiteEvent, Workspace
from workspaces.queries.chain import verify_chain
from workspaces.queries.sealed import value_of
from workspaces.sealing import BrokenSeal

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, db: None) -> Iterator[SecretsKeys]:
    make_user("operator", SiteRole.SITE_OPERATOR)
    found = SecretsKeys(tmp_path)
    with override_settings(SECRETS_KEYS=found):
        yield found


def rotate(*more: str, who: str = "operator") -> dict[str, Any]:
    out = StringIO()
    call_command("rotate_secrets_key", "--as", who, "--json", *more, stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def laboratories(count: int) -> list[tuple[Workspace, Actor]]:
    made = [make_workspace(f"lab-{number}") for number in range(count)]
    for workspace, owner in made:
        with scope.open_workspace(workspace.pk):
            create_secret(actor=owner, name="HF_TOKEN", value=CANARY)
    return made


def test_all_data_keys_are_wrapped_anew_and_the_old_key_is_gone(keys: SecretsKeys, tmp_path: Path) -> None:
    made = laboratories(3)
    make_workspace("without-secrets")
    old, old_key = keys.newest()
    with scope.open_workspace(made[0][0].pk):
        sealed = Secret.objects.get().ciphertext
    found = rotate()
    assert (found["rewrapped"], found["destroyed"], found["is_new"]) == (3, [old], True)
    assert keys.newest()[0] == found["key"] != old and keys.find(old) is None and not keys.older()
    assert all(old_key not in path.read_bytes() for path in (tmp_path / "keys").iterdir())
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "keys").iterdir())
    for workspace, _ in made:
        with scope.open_workspace(workspace.pk):
            assert DataKey.objects.get().wrapped_by == found["key"]
            assert value_of(Secret.objects.get()) == CANARY
            body = EventPayload.objects.get(event__verb="data_key.rewrapped").body
            assert body["details"]["changed"].popitem()[1] == {"wrapped_by": [old, found["key"]]}
            assert AuditEvent.objects.filter(verb="data_key.rewrapped").count() == 1 and verify_chain().is_whole
    with scope.open_workspace(made[0][0].pk):
        assert Secret.objects.get().ciphertext == sealed, "values are not sealed anew"
    told = SiteEvent.objects.filter(verb__startswith="secrets_key").order_by("sequence")
    assert [(event.verb, event.details) for event in told] == [
        ("secrets_key.renewed", {"key": found["key"]}),
        ("secrets_key.destroyed", {"keys": [old]}),
    ]


def test_cut_off_it_goes_on_where_it_was(keys: SecretsKeys) -> None:
    made = laboratories(2)
    old, _ = keys.newest()
    newest = keys.renew()  # as an earlier call that was killed behind it
    with scope.open_workspace(made[0][0].pk):
        assert value_of(Secret.objects.get()) == CANARY, "the old key is still there"
    found = rotate()
    assert (found["key"], found["is_new"], found["rewrapped"], found["destroyed"]) == (newest, False, 2, [old])


def test_the_old_key_can_be_kept_for_backups(keys: SecretsKeys) -> None:
    laboratories(1)
    old, _ = keys.newest()
    found = rotate("--keep-old")
    assert found["destroyed"] == [] and keys.find(old) is not None
    assert rotate() == {"key": found["key"], "is_new": False, "rewrapped": 0, "destroyed": [old]}
    assert keys.find(old) is None


def test_what_is_wrapped_by_a_lost_key_is_named(keys: SecretsKeys, tmp_path: Path) -> None:
    laboratories(2)
    (tmp_path / "keys" / "secrets.key").unlink()
    with pytest.raises(CommandError, match="The data key of lab-0 cannot be opened"):
        rotate()
    assert keys.older(), "nothing is destroyed"


def test_only_site_operators_may(keys: SecretsKeys) -> None:
    made = laboratories(1)
    before = keys.newest()
    assert made[0][1].user is not None
    for who in (made[0][1].user.username, "nobody"):
        with pytest.raises(CommandError):
            rotate(who=who)
    assert keys.newest() == before


def test_secrets_are_read_and_made_meanwhile(keys: SecretsKeys) -> None:
    Installation.objects.get_or_create(is_current=True)  # whose row a rotation and whoever makes a data key lock
    made = laboratories(3)
    fresh = [make_workspace(f"fresh-{number}") for number in range(6)]
    failed: list[BaseException] = []
    over = threading.Event()
    read = 0

    def reads() -> None:
        nonlocal read
        try:
            while not over.is_set():
                for workspace, _ in made:
                    with scope.open_workspace(workspace.pk):
                        assert value_of(Secret.objects.get(name="HF_TOKEN")) == CANARY
                    read += 1
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    def makes() -> None:
        try:
            for workspace, owner in fresh:
                with scope.open_workspace(workspace.pk):
                    create_secret(actor=owner, name="NEW", value=PLAIN)
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for work in (reads, makes)]
    for thread in threads:
        thread.start()
    names = [rotate()["key"] for _ in range(5)]
    threads[1].join()
    names.append(rotate()["key"])
    over.set()
    threads[0].join()
    assert not failed and read > 5 and len(set(names)) == 6
    for workspace, _ in [*made, *fresh]:
        with scope.open_workspace(workspace.pk):
            assert DataKey.objects.get().wrapped_by == names[-1]
            assert value_of(Secret.objects.get()) in (CANARY, PLAIN)


def test_a_key_that_is_destroyed_while_a_secret_is_read(keys: SecretsKeys) -> None:
    [(workspace, _)] = laboratories(1)

    class Late:
        """Between the look at the row and the look for its key the whole rotation happens."""

        happened = False

        def find(self, name: str) -> bytes | None:
            if not self.happened:
                self.happened = True
                with override_settings(SECRETS_KEYS=keys), scope.open_workspace(workspace.pk):
                    keys.renew()
                    rewrap_data_key(actor=Actor.system(job_id="test"))
                    keys.destroy(name)
            return keys.find(name)

    with override_settings(SECRETS_KEYS=Late()), scope.open_workspace(workspace.pk):
        assert value_of(Secret.objects.get()) == CANARY


def test_two_that_renew_at_once_lose_no_key(tmp_path: Path) -> None:
    found = SecretsKeys(tmp_path)
    first, _ = found.newest()
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(SecretsKeys(tmp_path).renew())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 8 and found.newest()[0] in names
    assert sorted([*found.older(), found.newest()[0]]) == sorted([first, *names])
    assert all(found.find(name) for name in (first, *names)) and found.find("0" * 16) is None


def test_a_key_that_is_not_here_opens_nothing(keys: SecretsKeys, tmp_path: Path) -> None:
    [(workspace, _)] = laboratories(1)
    with override_settings(SECRETS_KEYS=SecretsKeys(tmp_path / "elsewhere")), scope.open_workspace(workspace.pk), pytest.raises(BrokenSeal):
        value_of(Secret.objects.get())
