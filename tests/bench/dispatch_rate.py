"""Runs started a second: `make bench BENCH=dispatch_rate ARGS=[runs]`: no-op runs on the local pool, two dispatching workers, a whole installation.

All runs are launched while another one holds the pool's only slot; then the pool is given a slot for each. The rate is that of starts, between
the first and the last `started_at`, and beside it that of whole lives, until the last run has ended: started, watched, collected, settled.
RQ's own rate of jobs that do nothing is measured in the same run, with two workers of the same kind on the same Valkey.
Target: 20 starts a second, in no case under 10.
"""

import subprocess
import sys
import time
from collections.abc import Sequence

from labsite.embedded.home import CHECKOUT
from tests.installation import Installation, wait_until

TARGET, LEAST = 20.0, 10.0
NO_OPS = 2000
HOLDS = b"import time\ntime.sleep(3000)\n"


def main(count: int) -> None:
    with Installation() as labsite:
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from django.db.models import Max, Min  # noqa: PLC0415

        from runs.commands.run import cancel_run  # noqa: PLC0415
        from runs.models import Run  # noqa: PLC0415
        from tests.drills_ground import Ground  # noqa: PLC0415
        from tests.factories_registry import stored  # noqa: PLC0415
        from workspaces.commands.agent import create_agent, publish_agent_version  # noqa: PLC0415
        from workspaces.commands.pool import change_pool  # noqa: PLC0415
        from workspaces.models import Pool  # noqa: PLC0415

        bare = rq_rate()
        print(f"RQ alone, two workers, jobs that do nothing: {bare:6.1f} a second (n={NO_OPS})", flush=True)
        ground = Ground(labsite, HOLDS, slots=1, at_once=count + 1, engine_slots=count + 1, wall_seconds=3600)
        holder = labsite.ask("runs", {**ground.request, "budget": {"gpu_hours": 1}})  # its time: it holds the slot while all are launched
        wait_until(lambda: ground.active() == 1, "the run that holds the slot")
        with ground.looking():
            owner = ground.laboratory.owner
            agent = create_agent(actor=owner, slug="nothing")
            publish_agent_version(actor=owner, agent=agent, argv=["/bin/true"], files=[stored("main.py", b"")], wall_seconds=60)
        runs = [labsite.ask("runs", {**ground.request, "agent_id": "nothing", "budget": {"gpu_hours": 0.01}}) for _ in range(count)]
        print(f"{count} runs launched", flush=True)
        with ground.looking():
            change_pool(actor=owner, pool=Pool.objects.get(slug="local"), slots=count + 1)
        began = time.time()

        def ended() -> bool:
            with ground.looking():
                return Run.objects.filter(agent__slug="nothing", ended_at__isnull=False).count() == len(runs)

        wait_until(ended, "the end of all", seconds=300, every=0.5)  # the question costs as much as a twentieth of a start
        with ground.looking():
            found = Run.objects.filter(agent__slug="nothing")
            assert set(found.values_list("status", flat=True)) == {"succeeded"}
            first, last, end = (
                moment.timestamp() for moment in found.aggregate(Min("started_at"), Max("started_at"), Max("ended_at")).values()
            )
        rate, whole = (count - 1) / (last - first), count / (end - began)
        print(f"first start {first - began:.2f} s after there was room")
        print(f"starts {rate:.1f} a second, whole lives {whole:.1f} a second (n={count})")
        print(f"RQ's no-ops / starts = {bare / rate:.1f}")
        verdict = "met" if rate >= TARGET else "above the least" if rate >= LEAST else "MISSED"
        print(f"target {TARGET:.0f} a second, at least {LEAST:.0f}: {verdict}")
        with ground.looking():
            cancel_run(actor=owner, run=Run.objects.get(pk=holder["uuid"]))
        wait_until(lambda: labsite.ask(f"runs/{holder['id']}")["ended_at"], "the end of the holder")
        ground.check()


def rq_rate() -> float:
    """Jobs a second that two workers like labsite's finish, where a job does nothing; from the first start to an empty queue."""
    import django_rq  # noqa: PLC0415
    from rq import Queue  # noqa: PLC0415

    connection = django_rq.get_connection("dispatch")
    queue = Queue("bench", connection=connection, serializer="rq.serializers.JSONSerializer")
    for _ in range(NO_OPS):
        queue.enqueue_call("time.sleep", args=(0,), result_ttl=0)
    workers = [subprocess.Popen(worker_command(), cwd=CHECKOUT) for _ in range(2)]
    wait_until(lambda: queue.count < NO_OPS, "the first job")
    began, left = time.monotonic(), queue.count
    wait_until(lambda: queue.count == 0, "an empty queue", seconds=120)
    rate = left / (time.monotonic() - began)
    for worker in workers:
        assert worker.wait(30) == 0
    return rate


def worker_command() -> Sequence[str]:
    program = (
        "import django; django.setup(); import django_rq; from rq import Queue, SimpleWorker; from rq.serializers import JSONSerializer;"
        "c = django_rq.get_connection('dispatch'); SimpleWorker([Queue('bench', connection=c, serializer=JSONSerializer)], connection=c,"
        " serializer=JSONSerializer).work(burst=True, logging_level='WARNING')"
    )
    return [sys.executable, "-c", program]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
