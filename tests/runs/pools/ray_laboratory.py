"""A Laboratory whose pool asks a RayHead, over SSH on the head's host."""

from collections.abc import Iterator
from pathlib import Path

from tests.runs.pools import ssh_laboratory
from tests.runs.pools.laboratory import Laboratory
from tests.runs.pools.ray_head import RayHead


def laboratory(head: RayHead, store: Path) -> Iterator[Laboratory]:
    for lab in ssh_laboratory.laboratory(head.host, store):
        lab.pool = ssh_laboratory.pool_on(head.host, scheduler={"kind": "ray", "jobs_url": head.url})
        lab.spec |= {"scheduler": "ray", "jobs_url": head.url}
        yield lab
