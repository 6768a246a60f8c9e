"""Where runs execute: the site's engine, and a workspace's binding to it (contracts.md C)."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from workspaces import ids
from workspaces.models.base import Owned, owned_key, same_workspace, slug_field, unique_slug


class Engine(models.Model):
    """A machine or cluster of the installation; site operators keep it. No workspace.

    Without a host it is reached from this machine: `local` is the machine itself, Slurm is asked by its commands here, Ray at its address.
    """

    class Kind(models.TextChoices):
        LOCAL = "local", "this machine"
        SSH = "ssh", "a host over SSH"
        SLURM = "slurm", "Slurm"
        RAY = "ray", "Ray"

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    slug = models.CharField(max_length=64, unique=True, validators=[ids.validate_slug])
    kind = models.CharField(max_length=8, choices=Kind)
    slots = models.PositiveIntegerField(help_text="attempts that it runs at once, over all workspaces")
    gpu_kind = models.CharField(max_length=60, blank=True)
    host = models.CharField(
        max_length=255, blank=True, help_text="name or address of the machine that is reached by SSH; empty for this one"
    )
    port = models.PositiveIntegerField(default=22)
    host_key = models.TextField(blank=True, max_length=4000, help_text="its public key, as OpenSSH writes it; no other is accepted")
    jobs_url = models.CharField(max_length=300, blank=True, help_text="of Ray: its Jobs API, as the machine sees it that asks")
    isolations = ArrayField(
        models.CharField(max_length=10), default=list, blank=True, help_text="what it can keep, tried at each start; empty: not tried yet"
    )
    is_accepting = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(kind="ssh") | (~models.Q(host="") & ~models.Q(host_key="")), name="engine_ssh_has_host"
            ),
            models.CheckConstraint(condition=models.Q(host="") | ~models.Q(host_key=""), name="engine_host_has_key"),
            models.CheckConstraint(condition=models.Q(host="") | ~models.Q(kind="local"), name="engine_local_has_no_host"),
            models.CheckConstraint(
                condition=(models.Q(kind="ray") & ~models.Q(jobs_url="")) | (~models.Q(kind="ray") & models.Q(jobs_url="")),
                name="engine_ray_has_url",
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def address(self) -> str:
        """`host:port`; empty for this machine."""
        return f"{self.host}:{self.port}" if self.host else ""


class EngineSlot(models.Model):
    """A place on an engine, held by one attempt of whichever workspace; no workspace, so that all of them count together."""

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    engine = models.ForeignKey(Engine, on_delete=models.CASCADE, related_name="held_slots")
    number = models.PositiveIntegerField()
    attempt_id = models.UUIDField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["engine", "number"], name="engineslot_once")]


class EngineWeight(models.Model):
    """How much of the engines that it shares a workspace gets, against the others: twice the weight, twice the share. Set by the site."""

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    workspace = models.OneToOneField("workspaces.Workspace", on_delete=models.CASCADE, related_name="+")
    weight = models.PositiveSmallIntegerField(default=1)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(weight__gte=1, weight__lte=100), name="engineweight_range")]

    def __str__(self) -> str:
        return f"{self.workspace}: {self.weight}"


class Pool(Owned):
    prefix = "pool"

    class Isolation(models.TextChoices):
        USER = "user", "own user id for each attempt"
        NAMESPACE = "namespace", "namespaces of the kernel"
        NONE = "none", "no isolation"

    slug = slug_field()
    engine = models.ForeignKey(Engine, on_delete=models.PROTECT, related_name="+")
    slots = models.PositiveIntegerField(help_text="attempts of this workspace at once")
    milli_gpu_per_slot = models.PositiveIntegerField(default=1000, help_text="thousandths of a GPU that one slot counts as")
    price_micros_per_gpu_hour = models.BigIntegerField(default=0)
    currency = models.CharField(max_length=3, default="EUR")
    isolation = models.CharField(max_length=10, choices=Isolation)
    is_accepting = models.BooleanField(default=True)
    closed_at = models.DateTimeField(null=True, blank=True, help_text="since when it takes no new work, where an operator closed it")
    closed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    closed_reason = models.CharField(max_length=1000, blank=True)
    is_default = models.BooleanField(default=False)
    login = models.CharField(max_length=32, blank=True, help_text="account on the engine's host, where that is another machine")
    folder = models.CharField(max_length=200, blank=True, help_text="folder of the pool there, absolute or below the account's home")
    python = models.CharField(max_length=200, blank=True, help_text="environment there that runs find first on their PATH")
    secret = owned_key("workspaces.Secret", null=True, related_name="opens_pools")
    partition = models.CharField(max_length=64, blank=True, help_text="of Slurm; empty for its default")
    account = models.CharField(max_length=64, blank=True, help_text="that Slurm charges; empty for the default of the login")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("pool", "secret"),
            unique_slug("pool_slug_once"),
            models.UniqueConstraint(fields=["workspace"], condition=models.Q(is_default=True), name="pool_one_default"),
            models.CheckConstraint(condition=models.Q(price_micros_per_gpu_hour__gte=0), name="pool_price"),
        ]

    @property
    def gpus_per_slot(self) -> str:
        """`1`, `0.25`: what one slot counts as."""
        return f"{self.milli_gpu_per_slot // 1000}.{self.milli_gpu_per_slot % 1000:03d}".rstrip("0").rstrip(".")
