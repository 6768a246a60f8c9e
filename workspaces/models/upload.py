"""A file that arrives in pieces, until it lies in the store whole and a command has named it, or its day is over."""

from django.db import models

from workspaces.models.base import Telemetry


class Upload(Telemetry):
    prefix = "upload"

    holder = models.CharField(max_length=80, help_text="person who began it and alone goes on, or the run that it is sent for")
    path = models.CharField(max_length=1024, help_text="under which the file is to be kept")
    length = models.BigIntegerField(help_text="bytes, as announced")
    offset = models.BigIntegerField(default=0, help_text="bytes that are on the disk and acknowledged")
    has_header = models.BooleanField(default=True, help_text="of a table, for counting its records")
    announced_sha256 = models.CharField(max_length=64, blank=True)
    sha256 = models.CharField(max_length=64, blank=True, help_text="of the whole file, once it lies in the store")
    records = models.BigIntegerField(null=True, blank=True)
    expires_at = models.DateTimeField(help_text="a day after its last piece")

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            models.CheckConstraint(condition=models.Q(offset__gte=0, offset__lte=models.F("length")), name="upload_offset"),
        ]
