"""The workspace that the request of the first document is sent to: `ws_123`, whose objects bear the ids in it."""

from dataclasses import dataclass
from typing import Any

from django.test import Client

from tests.factories_registry import make_agent_version, make_benchmark, make_dataset_version
from tests.factories_runs import Laboratory, make_laboratory
from workspaces.access import Actor
from workspaces.commands.pool import bind_pool
from workspaces.commands.token import create_token
from workspaces.models import Pool

URL = "/api/v1/workspaces/ws_123/runs"
BODY = """{
  "benchmark_id": "bench_autogo_fast_learning",
  "agent_id": "agent_policy_runner",
  "dataset_ids": ["ds_self_play_window_42"],
  "compute_pool_id": "pool_ssh_a100",
  "budget": { "gpu_hours": 24 }
}"""


@dataclass(frozen=True)
class Caller:
    """A client of the API with a bearer token."""

    token: str

    def post(self, url: str, body: object = "", **headers: str) -> Any:
        return self._send("post", url, data=body, content_type="application/json", **headers)

    def get(self, url: str) -> Any:
        return self._send("get", url)

    def _send(self, method: str, url: str, *, data: object = None, content_type: str = "", **headers: str) -> Any:
        client = Client(
            headers={"Authorization": f"Bearer {self.token}", **{name.replace("_", "-"): text for name, text in headers.items()}}
        )
        return getattr(client, method)(url, **({"data": data, "content_type": content_type} if content_type else {}))


def make_seed_workspace(**settings: Any) -> Laboratory:
    laboratory = make_laboratory("123", **settings)
    with laboratory.opened():
        owner = laboratory.owner
        bind_pool(actor=owner, engine="local", slug="ssh-a100", slots=4, isolation=Pool.Isolation.NONE)
        make_benchmark(owner, "autogo-fast-learning")
        make_dataset_version(owner, "self-play-window-42")
        make_agent_version(owner, "policy-runner", code=b"print('hello')\n")
    return laboratory


def caller_for(laboratory: Laboratory, actor: Actor | None = None, scopes: tuple[str, ...] = ("run:write", "run:read")) -> Caller:
    with laboratory.opened():
        return Caller(create_token(actor=actor or laboratory.owner, name="test", scopes=scopes)[1])
