"""What a link of the lineage says in plain words, either way: what the far end is to the near one."""

from runs.queries.lineage import Link, Way
from runs.queries.lineage_edges import ASKED, DECIDED, VOUCHED, NodeKind, Relation

K, R = NodeKind, Relation
# (later, earlier): what the earlier is to the later, what the later is to the earlier; `{}` is the other end's name.
WORDS: dict[tuple[Relation, NodeKind, NodeKind], tuple[str, str]] = {
    (R.USED, K.RUN, K.AGENT_VERSION): ("the code of {}", "ran {}"),
    (R.GENERATED_BY, K.ARTIFACT, K.RUN): ("made {}", "left by {}"),
    (R.GENERATED_BY, K.EVALUATION, K.RUN): ("measured {}", "measured by {}"),
    (R.GENERATED_BY, K.DATASET_VERSION, K.RUN): ("made records of {}", "holds records of {}"),
    (R.DERIVED_FROM, K.EVALUATION, K.ARTIFACT): ("what {} measures", "measures {}"),
    (R.DERIVED_FROM, K.EVALUATION, K.CONTRACT): ("what {} was measured under", "measured under {}"),
    (R.DERIVED_FROM, K.CONTRACT, K.DATASET_VERSION): ("the holdout of {}", "has {} as its holdout"),
    (R.ATTRIBUTED_TO, K.DATASET_VERSION, K.PERSON): ("brought in {}", "brought in by {}"),
    (R.ATTRIBUTED_TO, K.AGENT_VERSION, K.PERSON): ("published {}", "published by {}"),
    (R.ASSOCIATED_WITH, K.RUN, K.PERSON): ("asked for {}", "asked for by {}"),
    (R.DERIVED_FROM, K.UNDECLARED, K.DATASET_VERSION): ("has the content of {}", "the content of {}"),
    (R.DERIVED_FROM, K.UNDECLARED, K.ARTIFACT): ("has the content of {}", "the content of {}"),
    (R.INFORMED_BY, K.RUN, K.RUN): ("was tried again as {}", "a retry of {}"),
    (R.INFORMED_BY, K.RUN, K.APPROVAL): ("decided on {}", "was decided on by {}"),
    (R.INFORMED_BY, K.PROMOTION, K.APPROVAL): ("decided on {}", "was decided on by {}"),
    (R.INFLUENCED_BY, K.POLICY_VERSION, K.APPROVAL): ("decided on {}", "was decided on by {}"),
    (R.INFORMED_BY, K.RUN, K.SWEEP): ("launched {}", "launched by {}"),
    (R.INFORMED_BY, K.SWEEP, K.DECISION): ("decided on {}", "was decided on by {}"),
    (R.INFORMED_BY, K.DECISION, K.APPROVAL): ("was answered before {}", "was taken on the answer to {}"),
    (R.INFORMED_BY, K.APPROVAL, K.DECISION): ("asked {}", "asked by {}"),
    (R.INFLUENCED_BY, K.DECISION, K.POLICY_VERSION): ("the rule of {}", "taken by the rule of {}"),
    (R.ATTRIBUTED_TO, K.POLICY_VERSION, K.PERSON): ("proposed {}", "proposed by {}"),
    (R.ATTRIBUTED_TO, K.CONTRACT, K.PERSON): ("made the benchmark of {}", "of a benchmark made by {}"),
    (R.GENERATED_BY, K.DATASET_VERSION, K.IMPORT): ("brought in {}", "brought in by {}"),
    (R.DERIVED_FROM, K.DATASET_VERSION, K.DATASET_SOURCE): ("named as the source of {}", "is from {}"),
    (R.DERIVED_FROM, K.CONTRACT, K.BENCHMARK_SOURCE): ("the source of {}", "a copy of {}"),
    (R.INFLUENCED_BY, K.CONTRACT, K.AGENT_VERSION): ("the evaluator of {}", "has {} as its evaluator"),
    (R.INFLUENCED_BY, K.CONTRACT, K.DATASET_VERSION): ("named by {}", "names {}"),
    (R.INFLUENCED_BY, K.PROMOTION, K.ARTIFACT): ("put forward in {}", "puts forward {}"),
    (R.INFLUENCED_BY, K.PROMOTION, K.EVALUATION): ("the score of {}", "judged by {}"),
    (R.GENERATED_BY, K.MEMORY, K.RUN): ("wrote {}", "written by {}"),
    (R.ATTRIBUTED_TO, K.MEMORY, K.PERSON): ("wrote {}", "written by {}"),
    **{
        (R.DERIVED_FROM, K.MEMORY, kind): ("what {} speaks of", "speaks of {}")
        for kind in (K.RUN, K.EVALUATION, K.ARTIFACT, K.DATASET_VERSION)
    },
    (R.INFORMED_BY, K.PROMOTION, K.PROMOTION): ("was superseded by {}", "supersedes {}"),
}
GENERIC: dict[Relation, tuple[str, str]] = {
    R.USED: ("read by {}", "read {}"),
    R.GENERATED_BY: ("made {}", "made by {}"),
    R.DERIVED_FROM: ("what {} was made of", "made of {}"),
    R.ATTRIBUTED_TO: ("answers for {}", "answered for by {}"),
    R.ASSOCIATED_WITH: ("had a part in {}", "done with {}"),
    R.INFORMED_BY: ("came before {}", "came after {}"),
    R.INFLUENCED_BY: ("what {} was about", "about {}"),
}
ROLES = {
    ASKED: ("asked for {}", "asked for by {}"),
    DECIDED: ("decided on {}", "decided on by {}"),
    VOUCHED: ("vouched for {}", "vouched for by {}"),
}


def words_of_link(link: Link, way: Way) -> str:
    """What the far end of the link, seen along `way`, is to the near one, with `{}` in the near one's place."""
    own = WORDS.get((link.relation, link.later.kind, link.earlier.kind), GENERIC[link.relation])
    forth, back = ROLES.get(link.role, own)
    return forth if way == Way.UP else back
