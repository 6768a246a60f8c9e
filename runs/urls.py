"""Pages of the upper floor, each with its scope, permission and kind."""

from runs.views import approval, artifact, benchmark, dataset, home, launch, log, metric, pool, queue, run, run_list
from workspaces.access import Kind, Permission
from workspaces.pages import page
from workspaces.views import benchmark as registered_benchmark
from workspaces.views import dataset as registered_dataset
from workspaces.views import pool as bound_pool

urlpatterns = [
    page("", home.home, name="home", needs=Permission.VIEW),
    page("runs/", run_list.run_list, name="run-list", needs=Permission.VIEW, kind=Kind.RUN),
    page("runs/csv/", run_list.run_list_csv, name="run-list-csv", needs=Permission.VIEW, kind=Kind.RUN),
    page("runs/launch/", launch.run_launch, name="run-launch", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, methods=("GET", "POST")),
    page("runs/<str:run>/", run.run_page, name="run", needs=Permission.VIEW, kind=Kind.RUN),
    page("runs/<str:run>/log/", log.run_log, name="run-log", needs=Permission.VIEW, kind=Kind.RUN),
    page("runs/<str:run>/metrics/csv/", metric.run_metric_csv, name="run-metric-csv", needs=Permission.VIEW, kind=Kind.RUN),
    page("runs/<str:run>/cancel/", run.run_cancel, name="run-cancel", needs=Permission.CANCEL_RUN, kind=Kind.RUN, methods=("POST",)),
    page("runs/<str:run>/retry/", run.run_retry, name="run-retry", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, methods=("POST",)),
    page("queue/", queue.queue, name="queue", needs=Permission.VIEW, kind=Kind.RUN),
    page("artifacts/", artifact.artifact_list, name="artifact-list", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page("artifacts/<str:artifact>/", artifact.artifact, name="artifact", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page(
        "approvals/<str:approval>/decide/",
        approval.approval_decide,
        name="approval-decide",
        needs=Permission.APPROVE,
        kind=Kind.APPROVAL,
        methods=("POST",),
    ),
    # Benchmarks and datasets have all their pages here, those of the ground floor too, so that `new` is tried before an id.
    page("benchmarks/", registered_benchmark.benchmark_list, name="benchmark-list", needs=Permission.VIEW, kind=Kind.BENCHMARK),
    page(
        "benchmarks/new/",
        registered_benchmark.benchmark_new,
        name="benchmark-new",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.BENCHMARK,
        methods=("GET", "POST"),
    ),
    page("benchmarks/<str:benchmark>/", benchmark.benchmark, name="benchmark", needs=Permission.VIEW, kind=Kind.BENCHMARK),
    page(
        "benchmarks/<str:benchmark>/edit/",
        registered_benchmark.benchmark_edit,
        name="benchmark-edit",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.BENCHMARK,
        methods=("GET", "POST"),
    ),
    page(
        "benchmarks/<str:benchmark>/contracts/new/",
        registered_benchmark.contract_new,
        name="contract-new",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.BENCHMARK,
        methods=("GET", "POST"),
    ),
    page("datasets/", registered_dataset.dataset_list, name="dataset-list", needs=Permission.VIEW, kind=Kind.DATASET),
    page(
        "datasets/new/",
        registered_dataset.dataset_new,
        name="dataset-new",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.DATASET,
        methods=("GET", "POST"),
    ),
    page("datasets/<str:dataset>/", dataset.dataset, name="dataset", needs=Permission.VIEW, kind=Kind.DATASET),
    page(
        "datasets/<str:dataset>/edit/",
        registered_dataset.dataset_edit,
        name="dataset-edit",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.DATASET,
        methods=("GET", "POST"),
    ),
    page(
        "datasets/<str:dataset>/upload/",
        registered_dataset.dataset_upload,
        name="dataset-upload",
        needs=Permission.IMPORT_DATA,
        kind=Kind.DATASET,
        methods=("GET", "POST"),
    ),
    page(
        "datasets/<str:dataset>/versions/<str:version>/files/<path:path>",
        registered_dataset.dataset_file,
        name="dataset-file",
        needs=Permission.VIEW,
        kind=Kind.DATASET,
    ),
    page("pools/", bound_pool.pool_list, name="pool-list", needs=Permission.VIEW, kind=Kind.POOL),
    page("pools/new/", bound_pool.pool_bind, name="pool-bind", needs=Permission.MANAGE_POOL, kind=Kind.POOL, methods=("GET", "POST")),
    page("pools/<str:pool>/", pool.pool, name="pool", needs=Permission.VIEW, kind=Kind.POOL),
    page(
        "pools/<str:pool>/change/",
        bound_pool.pool_change,
        name="pool-change",
        needs=Permission.MANAGE_POOL,
        kind=Kind.POOL,
        methods=("GET", "POST"),
    ),
    page(
        "pools/<str:pool>/unbind/",
        bound_pool.pool_unbind,
        name="pool-unbind",
        needs=Permission.MANAGE_POOL,
        kind=Kind.POOL,
        methods=("GET", "POST"),
    ),
    page("pools/<str:pool>/open/", bound_pool.pool_open, name="pool-open", needs=Permission.MANAGE_POOL, kind=Kind.POOL, methods=("POST",)),
]
