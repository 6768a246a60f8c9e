"""Work that a pool has and no attempt explains: ended by an operator's decision with a reason, since nothing here ends it by itself."""

from runs.models import Attempt, PoolContact
from runs.queries.ours import is_ours
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.models import Pool
from workspaces.verbs import Verb


@command(Verb.STRANGER_ENDED, needs=Permission.MANAGE_POOL, kind=Kind.POOL, in_archive="running work comes to its end")
def end_stranger(event: Draft, /, *, actor: Actor, pool: Pool, key: str, reason: str) -> str:
    """Decide that a stranger of this installation's name is ended, and return its key; `runs.contact.end_there` then tells the pool, again where it
    did not answer. Refusal for what the pool did not list when it was asked last, and for what bears another name."""
    reason = reason.strip()
    if not reason:
        raise Refusal("Say why it is ended; nobody can ask the run, there is none.", field="reason")
    row = PoolContact.objects.filter(pool=pool).first()
    if row is None or key not in [one["key"] for one in row.strangers] or Attempt.objects.filter(key=key).exists():
        raise Refusal(f"{pool.slug} did not list it as unknown when it was asked last; it is asked each minute.")
    if not is_ours(key):
        raise Refusal("It bears the name of another installation, which may have it at work; end it on the engine itself.")
    event.about = pool
    event.reason = reason[:1000]
    event.details["key"] = key
    return key
