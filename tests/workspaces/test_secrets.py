"""Secrets: what is kept of a value, who may do what with one, and what is refused."""

import base64
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.db import connection, transaction
from django.utils import timezone

from labsite.owner import as_owner
from tests.factories import Role, make_member, make_workspace
from tests.factories_registry import make_agent_version, make_benchmark
from tests.factories_secrets import CANARY, PLAIN
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal, row_hash
from workspaces.commands.secret import change_secret, create_secret, revoke_secret, rotate_secret
from workspaces.models import Agent, AuditEvent, DataKey, EventPayload, EventSubject, Secret, SecretAgent, Workspace
from workspaces.queries.sealed import data_key, value_of
from workspaces.queries.secret import dependents, find_secret, row_of, secret_rows
from workspaces.sealing import BrokenSeal, Sealed, fingerprint, fresh_key, seal, unseal
from workspaces.secret_value import ssh_fingerprint

pytestmark = pytest.mark.django_db(transaction=True)
FIRST = "hf_the_one_before_1234"


@pytest.fixture
def lab(db: None) -> tuple[Workspace, Actor]:
    return make_workspace(region="local")


def ssh_key() -> str:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def with_passphrase(key: str) -> str:
    """The key as if it had a passphrase: its frame says so, which is read before anything is decrypted (PROTOCOL.key of OpenSSH)."""
    body = base64.b64decode("".join(key.split("\n")[1:-2]))
    magic, none = b"openssh-key-v1\0", b"\0\0\0\4none\0\0\0\4none\0\0\0\0"
    assert body.startswith(magic + none)
    options = b"\0\0\0\x10" + b"s" * 16 + b"\0\0\0\x10"
    frame = b"".join(len(part).to_bytes(4) + part for part in (b"aes256-ctr", b"bcrypt", options))
    keys = body[len(magic + none) :]
    ends = 8 + int.from_bytes(keys[4:8])
    private = keys[ends + 4 :]
    private += bytes(-len(private) % 16)  # whole blocks of the cipher
    text = base64.b64encode(magic + frame + keys[:ends] + len(private).to_bytes(4) + private).decode()
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{text}\n-----END OPENSSH PRIVATE KEY-----\n"


def test_a_value_is_kept_sealed_and_opens_for_its_own_place_only(lab: tuple[Workspace, Actor]) -> None:
    workspace, owner = lab
    with scope.open_workspace(workspace.pk):
        first = create_secret(actor=owner, name="HF_TOKEN", value=CANARY)
        second = create_secret(actor=owner, name="OTHER", value=CANARY)
        assert value_of(first) == value_of(second) == CANARY
        assert first.ciphertext != second.ciphertext and first.fingerprint == second.fingerprint
        assert CANARY not in str(Secret.objects.values().get(pk=first.pk)) and DataKey.objects.count() == 1
        first.nonce, first.ciphertext = second.nonce, second.ciphertext  # moved to another row
        with pytest.raises(BrokenSeal):
            value_of(first)
        second.version = 2
        with pytest.raises(BrokenSeal):
            value_of(second)


def test_a_ciphertext_of_another_workspace_does_not_open(lab: tuple[Workspace, Actor]) -> None:
    other, stranger = make_workspace("other")
    with scope.open_workspace(other.pk):
        theirs = create_secret(actor=stranger, name="HF_TOKEN", value=CANARY)
        their_key = DataKey.objects.get()
    with scope.open_workspace(lab[0].pk):
        ours = create_secret(actor=lab[1], name="HF_TOKEN", value=CANARY)
        assert ours.fingerprint != theirs.fingerprint, "equal values in two workspaces cannot be told to be equal"
        key = DataKey.objects.get()
    with as_owner(), scope.open_workspace(lab[0].pk):
        DataKey.objects.filter(pk=key.pk).update(nonce=their_key.nonce, wrapped=their_key.wrapped)
    with scope.open_workspace(lab[0].pk):
        for opened in (data_key, lambda: value_of(Secret.objects.get())):
            with pytest.raises(BrokenSeal):
                opened()


def test_sealing() -> None:
    key = fresh_key()
    sealed = seal(key, b"plain", bound_to="here")
    assert unseal(key, sealed, bound_to="here") == b"plain"
    assert seal(key, b"plain", bound_to="here") != sealed
    attempts: list[Callable[[], object]] = [
        lambda: unseal(fresh_key(), sealed, bound_to="here"),
        lambda: unseal(key, sealed, bound_to="there"),
        lambda: unseal(key, Sealed(sealed.nonce, sealed.ciphertext[:-8] + "AAAAAAA="), bound_to="here"),
        lambda: unseal(key, Sealed("", ""), bound_to="here"),
        lambda: unseal(key, Sealed("?", "!"), bound_to="here"),
    ]
    for wrong in attempts:
        with pytest.raises(BrokenSeal):
            wrong()
    assert fingerprint(key, b"a") == fingerprint(key, b"a") != fingerprint(key, b"b")
    assert fingerprint(key, b"a") != fingerprint(fresh_key(), b"a")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("1234567", "at least 8 characters"),
        ("a b c d e f g", "at least 8 characters"),
        ("a" * 65_537, "at most 65,536 bytes; this has 65,537"),
        ("é" * 40_000, "this has 80,000"),
        ("abcdefgh\n" * 101, "at most 100 lines; this has 101.*looked for in all that a run writes"),
        ("a1b2c3d4\r\n" * 3_000, "at most 100 lines; this has 3,000"),
        ("12345678\x00", "no NUL"),
        ("12345678\ud800", "no NUL"),
    ],
)
def test_values_that_are_refused(lab: tuple[Workspace, Actor], value: str, words: str) -> None:
    with scope.open_workspace(lab[0].pk):
        with pytest.raises(Refusal, match=words) as refusal:
            create_secret(actor=lab[1], name="HF_TOKEN", value=value)
        assert refusal.value.field == "value"
        if value.strip():
            assert value[:7] not in str(refusal.value)
        assert not Secret.objects.exists() and not DataKey.objects.exists()


@pytest.mark.parametrize("name", ["", "hf_token", "1A", "A-B", "Ä", "A" * 65, "A\n", "LABSITE_TOKEN", "LABSITE_X"])
def test_names_that_are_refused(lab: tuple[Workspace, Actor], name: str) -> None:
    with scope.open_workspace(lab[0].pk), pytest.raises(Refusal) as refusal:
        create_secret(actor=lab[1], name=name, value=PLAIN)
    assert refusal.value.field == "name"


def test_a_value_is_kept_to_the_character(lab: tuple[Workspace, Actor]) -> None:
    with scope.open_workspace(lab[0].pk):
        for name, value in (("A", "  blanks around  "), ("B", "two\r\nlines of it\n"), ("C", "x" * 65_536), ("D", "line of it\r\n" * 100)):
            assert value_of(create_secret(actor=lab[1], name=name, value=value)) == value


def test_an_ssh_key_is_checked_and_shows_its_public_half(lab: tuple[Workspace, Actor]) -> None:
    key = ssh_key()
    with scope.open_workspace(lab[0].pk):
        secret = create_secret(actor=lab[1], name="DEPLOY_KEY", kind="ssh_key", value=key.strip().replace("\n", "\r\n"))
        assert value_of(secret) == key, "with the line ends and the last one that OpenSSH wants"
        assert secret.public_key.startswith("ssh-ed25519 AAAA")
        assert ssh_fingerprint(secret.public_key).startswith("SHA256:") and len(ssh_fingerprint(secret.public_key)) == 50
        before = secret.public_key
        assert rotate_secret(actor=lab[1], secret=secret, value=ssh_key()).public_key != before
        for value, words in (
            (PLAIN, "no private key as OpenSSH writes it"),
            (key[:60] + key[70:], "no private key as OpenSSH writes it"),
            (secret.public_key, "no private key"),
            (with_passphrase(key), "has a passphrase"),
        ):
            with pytest.raises(Refusal, match=words) as refusal:
                create_secret(actor=lab[1], name="OTHER", kind="ssh_key", value=value)
            assert refusal.value.__cause__ is None and refusal.value.__context__ is None
            with pytest.raises(Refusal, match=words):
                rotate_secret(actor=lab[1], secret=secret, value=value)


def test_rotating_leaves_nothing_of_the_value_before(lab: tuple[Workspace, Actor]) -> None:
    workspace, owner = lab
    with scope.open_workspace(workspace.pk):
        secret = create_secret(actor=owner, name="HF_TOKEN", value=FIRST, rotate_after_days=30)
        before = secret.ciphertext
        with pytest.raises(Refusal, match="the value that it has already"):
            rotate_secret(actor=owner, secret=secret, value=FIRST)
        changed = rotate_secret(actor=owner, secret=secret, value=PLAIN, reason="a year is enough")
        assert (changed.version, value_of(changed)) == (2, PLAIN)
        assert changed.rotation_due_at is not None and changed.rotation_due_at - timezone.now() > timedelta(days=29)
        body = EventPayload.objects.get(event__verb="secret.rotated").body
        assert body["reason"] == "a year is enough"
        assert set(body["details"]["changed"][f"secret {secret.public_id}"]) == {"version", "fingerprint", "rotated_at"}
        for text in (before, changed.ciphertext, FIRST, PLAIN):
            assert text not in str(list(EventPayload.objects.values_list("body", flat=True)))
        subject = EventSubject.objects.get(event__verb="secret.rotated", type="secret")
        assert subject.after_hash == row_hash(changed) != subject.before_hash
        stored = str(list(Secret.objects.values())) + str(list(DataKey.objects.values()))
        assert before not in stored


def test_revoking_destroys_the_value_and_frees_the_name(lab: tuple[Workspace, Actor]) -> None:
    workspace, owner = lab
    with scope.open_workspace(workspace.pk):
        secret = create_secret(actor=owner, name="HF_TOKEN", value=PLAIN, rotate_after_days=1)
        with pytest.raises(Refusal, match="already; give it another value instead"):
            create_secret(actor=owner, name="HF_TOKEN", value=CANARY)
        with pytest.raises(Refusal, match="Say why"):
            revoke_secret(actor=owner, secret=secret, reason=" ")
        gone = revoke_secret(actor=owner, secret=secret, reason="leaked")
        assert (gone.ciphertext, gone.nonce, gone.rotation_due_at) == ("", "", None)
        attempts: list[Callable[[], object]] = [
            lambda: revoke_secret(actor=owner, secret=secret, reason="again"),
            lambda: rotate_secret(actor=owner, secret=secret, value=CANARY),
            lambda: change_secret(actor=owner, secret=secret, description="x"),
        ]
        for refused in attempts:
            with pytest.raises(Refusal, match="was revoked on"):
                refused()
        assert find_secret("HF_TOKEN") == gone
        again = create_secret(actor=owner, name="HF_TOKEN", value=CANARY)
        assert find_secret("HF_TOKEN") == again and [row.status for row in secret_rows()] == ["ready", "revoked"]


def test_lists_change_row_by_row(lab: tuple[Workspace, Actor]) -> None:
    workspace, owner = lab
    with scope.open_workspace(workspace.pk):
        make_agent_version(owner, "one", secrets=["HF_TOKEN"])
        make_agent_version(owner, "two", secrets=["OTHER"])
        one, two = Agent.objects.find("one"), Agent.objects.find("two")
        benchmark = make_benchmark(owner)
        secret = create_secret(actor=owner, name="HF_TOKEN", value=PLAIN, agents=[one, one], benchmarks=[benchmark])
        kept = SecretAgent.objects.get().pk
        assert [version.agent.slug for version in dependents(secret)] == ["one"]
        change_secret(actor=owner, secret=secret, agents=[one, two], benchmarks=[], description=" for the hub ", rotate_after_days=90)
        row = row_of(secret)
        assert (row.agents, row.pools, row.benchmarks) == (["one", "two"], [], [])
        assert (row.secret.description, row.secret.rotate_after_days) == ("for the hub", 90)
        assert SecretAgent.objects.filter(pk=kept).exists(), "what stays is not made anew"
        changed = EventPayload.objects.get(event__verb="secret.changed").body["details"]["changed"][f"secret {secret.public_id}"]
        assert changed["agents"] == [["one"], ["one", "two"]] and changed["benchmarks"] == [["accuracy"], []] and "pools" not in changed
        assert EventSubject.objects.filter(event__verb="secret.changed").count() == 3
        change_secret(actor=owner, secret=secret, rotate_after_days=None)
        assert row_of(secret).secret.rotate_after_days is None
        with pytest.raises(Refusal, match="Nothing would change"):
            change_secret(actor=owner, secret=secret, agents=[two, one], description="for the hub", rotate_after_days=None)
        for days in (0, -5, 3651):
            with pytest.raises(Refusal, match="1 to 3,650 days"):
                change_secret(actor=owner, secret=secret, rotate_after_days=days)


def test_due_is_said(lab: tuple[Workspace, Actor]) -> None:
    with scope.open_workspace(lab[0].pk):
        secret = create_secret(actor=lab[1], name="HF_TOKEN", value=PLAIN, rotate_after_days=1)
        row = row_of(secret)
        assert row.status == "ready"
        row.secret.rotated_at -= timedelta(days=1)
        assert row.status == "due"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RESEARCHER, Role.APPROVER, Role.AUDITOR])
def test_who_may_not(lab: tuple[Workspace, Actor], role: str) -> None:
    member = make_member(lab[0], role)
    with scope.open_workspace(lab[0].pk):
        secret = create_secret(actor=lab[1], name="HF_TOKEN", value=PLAIN)
        attempts: list[Callable[[], object]] = [
            lambda: create_secret(actor=member, name="OTHER", value=PLAIN),
            lambda: rotate_secret(actor=member, secret=secret, value=CANARY),
            lambda: change_secret(actor=member, secret=secret, description="x"),
            lambda: revoke_secret(actor=member, secret=secret, reason="x"),
        ]
        for denied in attempts:
            with pytest.raises(Denied):
                denied()


def test_two_first_secrets_at_once_have_one_key(lab: tuple[Workspace, Actor]) -> None:
    workspace, owner = lab
    start, failed = threading.Barrier(4), []

    def make(number: int) -> None:
        try:
            with scope.open_workspace(workspace.pk):
                start.wait()
                create_secret(actor=owner, name=f"SECRET_{number}", value=f"{CANARY}{number}")
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=make, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with scope.open_workspace(workspace.pk):
        assert not failed and DataKey.objects.count() == 1
        assert sorted(value_of(secret) for secret in Secret.objects.all()) == [f"{CANARY}{number}" for number in range(4)]
        assert AuditEvent.objects.filter(verb="secret.created").count() == 4


def test_a_write_beside_the_commands_is_refused(lab: tuple[Workspace, Actor]) -> None:
    with scope.open_workspace(lab[0].pk):
        secret = create_secret(actor=lab[1], name="HF_TOKEN", value=PLAIN)
        with pytest.raises(Exception, match="changed outside a command"), transaction.atomic():
            Secret.objects.filter(pk=secret.pk).update(ciphertext="")
    with as_owner(), scope.open_workspace(lab[0].pk), pytest.raises(Exception, match="secret_revoked_is_gone"), transaction.atomic():
        Secret.objects.filter(pk=secret.pk).update(revoked_at=timezone.now())
