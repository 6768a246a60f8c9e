"""What a link of the lineage says in plain words, either way: what the far end is to the near one."""

from runs.queries.lineage import Link, Way
from runs.queries.lineage_edges import NodeKind, Relation

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
    (R.ASSOCIATED_WITH, K.APPROVAL, K.PERSON): ("voted on {}", "voted on by {}"),
    (R.DERIVED_FROM, K.UNDECLARED, K.DATASET_VERSION): ("has the content of {}", "the content of {}"),
    (R.DERIVED_FROM, K.UNDECLARED, K.ARTIFACT): ("has the content of {}", "the content of {}"),
    (R.INFORMED_BY, K.RUN, K.RUN): ("was tried again as {}", "a retry of {}"),
    (R.INFORMED_BY, K.RUN, K.APPROVAL): ("decided on {}", "was decided on by {}"),
}
GENERIC: dict[Relation, tuple[str, str]] = {
    R.USED: ("read by {}", "read {}"),
    R.GENERATED_BY: ("made {}", "made by {}"),
    R.DERIVED_FROM: ("what {} was made of", "made of {}"),
    R.ATTRIBUTED_TO: ("answers for {}", "answered for by {}"),
    R.ASSOCIATED_WITH: ("had a part in {}", "done with {}"),
    R.INFORMED_BY: ("came before {}", "came after {}"),
}


def words_of_link(link: Link, way: Way) -> str:
    """What the far end of the link, seen along `way`, is to the near one, with `{}` in the near one's place."""
    forth, back = WORDS.get((link.relation, link.later.kind, link.earlier.kind), GENERIC[link.relation])
    return forth if way == Way.UP else back
