"""Checkpoints among a run's inputs."""

from dataclasses import dataclass

import positions
from network import Weights, random_weights, read_checkpoint, schema_of
from run_folder import Job, JobError

RANDOM_CHANNELS = 16


@dataclass(frozen=True)
class Checkpoint:
    """`name` is the input's slug, or says that the weights are random; `sha256` names the input, empty for random ones."""

    name: str
    sha256: str
    weights: Weights


def find_checkpoints(job: Job) -> list[Checkpoint]:
    """Of each input that is neither a dataset nor positions its checkpoint, in their order. Raises JobError where one holds none, or several."""
    found = []
    for entry in job.inputs:
        paths = entry.files(".npz")
        if entry.kind == "dataset" or (paths and all(schema_of(path) == positions.SCHEMA for path in paths)):
            continue
        if len(paths) != 1:
            raise JobError(f"{entry.slug} holds {len(paths) or 'no'} .npz files; a checkpoint is one")
        found.append(Checkpoint(entry.slug, entry.sha256, read_checkpoint(paths[0], f"{entry.slug}/{paths[0].name}")[0]))
    return found


def one_checkpoint(job: Job) -> Checkpoint:
    """The only checkpoint, or random weights of the run's seed where none is given. Raises JobError where there are several."""
    found = find_checkpoints(job)
    if len(found) > 1:
        raise JobError(f"{len(found)} checkpoints among the inputs ({', '.join(each.name for each in found)}); give one or none")
    return found[0] if found else random_checkpoint(job, job.whole("channels", RANDOM_CHANNELS, 1, 64))


def random_checkpoint(job: Job, channels: int) -> Checkpoint:
    return Checkpoint("random-weights", "", random_weights(channels, [job.seed, 0]))
