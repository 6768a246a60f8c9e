"""Pages of evidence: artifacts and what of them is promoted, who beats whom, where things came from, what is withdrawn."""

from runs.views import arena, artifact, contract_check, evaluation, head_to_head, lineage, over_time, promotion, withdrawal, withdrawal_csv
from workspaces.access import Kind, Permission
from workspaces.pages import page

# What has a lineage: its address, and the kind that a reader must be allowed to see.
LINEAGES = (
    ("runs/<str:run>", "run", Kind.RUN),
    ("evaluations/<str:evaluation>", "evaluation", Kind.EVALUATION),
    ("artifacts/<str:artifact>", "artifact", Kind.ARTIFACT),
    ("datasets/<str:dataset>/versions/<str:version>", "dataset", Kind.DATASET),
    ("agents/<str:agent>/versions/<str:agentversion>", "agent", Kind.AGENT),
    ("benchmarks/<str:benchmark>/contracts/<str:contract>", "benchmark", Kind.BENCHMARK),
    ("promotions/<str:promotion>", "promotion", Kind.ARTIFACT),
    ("memory/<str:memoryentry>", "memory", Kind.MEMORY),
    ("decisions/<str:decision>", "decision", Kind.POLICY),
    ("people/<str:username>", "person", Kind.MEMBER),
)

urlpatterns = [
    *(
        page(f"{place}/lineage/", lineage.PAGES[noun], name=f"{noun}-lineage", needs=Permission.VIEW, kind=kind)
        for place, noun, kind in LINEAGES
    ),
    *(
        page(f"{place}/lineage/prov.json", lineage.DOCUMENTS[noun], name=f"{noun}-prov", needs=Permission.VIEW, kind=kind)
        for place, noun, kind in LINEAGES
    ),
    page("benchmarks/<str:benchmark>/arena/", arena.benchmark_arena, name="benchmark-arena", needs=Permission.VIEW, kind=Kind.EVALUATION),
    page(
        "benchmarks/<str:benchmark>/arena/csv/",
        arena.benchmark_arena_csv,
        name="benchmark-arena-csv",
        needs=Permission.VIEW,
        kind=Kind.EVALUATION,
    ),
    page(
        "benchmarks/<str:benchmark>/arena/sequential/",
        head_to_head.benchmark_sequential,
        name="benchmark-sequential",
        needs=Permission.VIEW,
        kind=Kind.EVALUATION,
    ),
    page(
        "benchmarks/<str:benchmark>/arena/sequential/csv/",
        head_to_head.benchmark_sequential_csv,
        name="benchmark-sequential-csv",
        needs=Permission.VIEW,
        kind=Kind.EVALUATION,
    ),
    page(
        "benchmarks/<str:benchmark>/over-time/",
        over_time.benchmark_over_time,
        name="benchmark-over-time",
        needs=Permission.VIEW,
        kind=Kind.EVALUATION,
    ),
    page(
        "benchmarks/<str:benchmark>/over-time/csv/",
        over_time.benchmark_over_time_csv,
        name="benchmark-over-time-csv",
        needs=Permission.VIEW,
        kind=Kind.EVALUATION,
    ),
    page("evaluations/<str:evaluation>/", evaluation.evaluation, name="evaluation", needs=Permission.VIEW, kind=Kind.EVALUATION),
    page(
        "evaluations/<str:evaluation>/samples/",
        evaluation.evaluation_samples,
        name="evaluation-samples",
        needs=Permission.VIEW,
        kind=Kind.EVALUATION,
    ),
    page(
        "evaluations/<str:evaluation>/compare/",
        evaluation.evaluation_compare,
        name="evaluation-compare",
        needs=Permission.VIEW,
        kind=Kind.EVALUATION,
    ),
    page(
        "evaluations/<str:evaluation>/check/",
        contract_check.contract_check_new,
        name="contract-check-new",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.BENCHMARK,
        methods=("GET", "POST"),
    ),
    page(
        "benchmarks/<str:benchmark>/check/stop/",
        contract_check.contract_check_stop,
        name="contract-check-stop",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.BENCHMARK,
        methods=("GET", "POST"),
    ),
    page("checks/<str:check>/", contract_check.check, name="check", needs=Permission.VIEW, kind=Kind.BENCHMARK),
    page("withdrawals/", withdrawal.withdrawal_list, name="withdrawal-list", needs=Permission.VIEW, kind=Kind.DATASET),
    page(
        "withdrawals/new/",
        withdrawal.withdrawal_new,
        name="withdrawal-new",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.DATASET,
        methods=("GET", "POST"),
    ),
    page(
        "withdrawals/new/csv/",
        withdrawal_csv.withdrawal_new_csv,
        name="withdrawal-new-csv",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.DATASET,
    ),
    page(
        "withdrawals/<str:withdrawal>/csv/", withdrawal_csv.withdrawal_csv, name="withdrawal-csv", needs=Permission.VIEW, kind=Kind.DATASET
    ),
    page("withdrawals/<str:withdrawal>/", withdrawal.withdrawal, name="withdrawal", needs=Permission.VIEW, kind=Kind.DATASET),
    page(
        "withdrawals/<str:withdrawal>/undo/",
        withdrawal.withdrawal_undo,
        name="withdrawal-undo",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.DATASET,
        methods=("POST",),
    ),
    page("artifacts/", artifact.artifact_list, name="artifact-list", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page(
        "artifacts/keeping/",
        artifact.artifact_days,
        name="artifact-days",
        needs=Permission.MANAGE_WORKSPACE,
        kind=Kind.WORKSPACE,
        methods=("GET", "POST"),
    ),
    page("artifacts/<str:artifact>/", artifact.artifact, name="artifact", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page("artifacts/<str:artifact>/file/", artifact.artifact_file, name="artifact-file", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page(
        "artifacts/<str:artifact>/keep/",
        artifact.artifact_keep,
        name="artifact-keep",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.ARTIFACT,
        methods=("GET", "POST"),
    ),
    page(
        "artifacts/<str:artifact>/delete/",
        artifact.artifact_delete,
        name="artifact-delete",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.ARTIFACT,
        methods=("GET", "POST"),
    ),
    page(
        "artifacts/<str:artifact>/restore/",
        artifact.artifact_restore,
        name="artifact-restore",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.ARTIFACT,
        methods=("POST",),
    ),
    page(
        "artifacts/<str:artifact>/remove/",
        artifact.artifact_remove,
        name="artifact-remove",
        needs=Permission.EDIT_REGISTRY,
        kind=Kind.ARTIFACT,
        methods=("POST",),
    ),
    page(
        "artifacts/<str:artifact>/promote/",
        promotion.promotion_propose,
        name="promotion-propose",
        needs=Permission.PROMOTE,
        kind=Kind.ARTIFACT,
        methods=("GET", "POST"),
    ),
    page("promotions/", promotion.promotion_list, name="promotion-list", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page("promotions/<str:promotion>/", promotion.promotion, name="promotion", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page("promotions/<str:promotion>/trace/", promotion.promotion_trace, name="promotion-trace", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page(
        "promotions/<str:promotion>/statement/",
        promotion.promotion_statement,
        name="promotion-statement",
        needs=Permission.VIEW,
        kind=Kind.ARTIFACT,
    ),
    page(
        "promotions/<str:promotion>/withdraw/",
        promotion.promotion_withdraw,
        name="promotion-withdraw",
        needs=Permission.PROMOTE,
        kind=Kind.ARTIFACT,
        methods=("GET", "POST"),
    ),
    page("promoted/<str:name>/", promotion.promoted, name="promoted", needs=Permission.VIEW, kind=Kind.ARTIFACT),
    page("promoted/<str:name>/file/", promotion.promoted_file, name="promoted-file", needs=Permission.VIEW, kind=Kind.ARTIFACT),
]
