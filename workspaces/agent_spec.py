"""What an agent version may say of itself, field by field, beyond what columns check: argv, environment, outputs, secrets, sizes."""

import re
from typing import Any

from django.core.exceptions import ValidationError

from workspaces import ids
from workspaces.agent_inputs import DATASET, ROLES, Need
from workspaces.audit import Refusal
from workspaces.file_paths import BadPath, clean_path
from workspaces.models.secret import SECRET_NAME
from workspaces.parameters import BadSchema, check_schema

MAX_ARGUMENTS = 64
MAX_NAMES = 32
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET = re.compile(SECRET_NAME)
_TOOL = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_KIND = re.compile(r"[a-z][a-z0-9_]{0,19}")
MAX_SLOTS = 1024
MAX_WALL_SECONDS = 30 * 86_400
MAX_MEMORY_BYTES = 2**44
# What the launcher sets by itself; a bundle that could change these would step around the pool.
KEPT_VARIABLES = ("LABSITE_", "LD_", "PATH", "HOME", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")


def refuse_spec(spec: dict[str, Any]) -> None:
    """Refuse the first thing in the fields of an agent version that cannot be run, naming the field."""
    argv = spec["argv"]
    if not argv or not argv[0]:
        raise Refusal("An agent needs the command that starts it, such as python train.py.", field="argv")
    if len(argv) > MAX_ARGUMENTS:
        raise Refusal(f"A command may have {MAX_ARGUMENTS} arguments; this has {len(argv)}.", field="argv")
    if not _KIND.fullmatch(spec["kind"]):
        raise Refusal("The kind is one lower-case word, such as train, evaluate or selfplay.", field="kind")
    try:
        check_schema(spec["parameter_schema"])
    except BadSchema as error:
        raise Refusal(str(error), field="parameter_schema") from error
    _refuse_environment(spec["environment"])
    _refuse_outputs(spec["outputs"])
    _refuse_inputs(spec["inputs"])
    _refuse_names(spec["secrets"], _SECRET, "secrets", "A secret is named in capitals, such as HF_TOKEN")
    _refuse_names(spec["tools"], _TOOL, "tools", "A tool is named in lower-case letters, digits, - _ and .")
    for field, most, words in (
        ("slots", MAX_SLOTS, "slots"),
        ("wall_seconds", MAX_WALL_SECONDS, "seconds"),
        ("memory_bytes", MAX_MEMORY_BYTES, "bytes"),
    ):
        value = spec[field]
        if value is not None and not 1 <= value <= most:
            raise Refusal(f"{value:,} {words} is not within 1 to {most:,}.", field=field)


def _refuse_environment(environment: dict[str, Any]) -> None:
    if len(environment) > MAX_NAMES:
        raise Refusal(f"At most {MAX_NAMES} variables.", field="environment")
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name) or name.startswith(KEPT_VARIABLES):
            raise Refusal(f"{name[:80]} cannot be set as a variable of the run's environment.", field="environment")
        if not isinstance(value, str) or len(value) > 4096 or any(character in value for character in "\x00\n"):
            raise Refusal(f"The value of {name} is one line of at most 4,096 characters. Secrets do not belong here.", field="environment")


def _refuse_outputs(outputs: list[dict[str, Any]]) -> None:
    if len(outputs) > MAX_NAMES:
        raise Refusal(f"At most {MAX_NAMES} outputs.", field="outputs")
    for output in outputs:
        if not set(output) <= {"glob", "name", "kind"} or not all(isinstance(value, str) for value in output.values()):
            raise Refusal("An output has a glob, and perhaps a name and a kind.", field="outputs")
        try:
            clean_path(output.get("glob", ""))
        except BadPath as error:
            raise Refusal(f"The glob of an output: {error}", field="outputs") from error
        if len(output.get("name", "")) > 250 or not _KIND.fullmatch(output.get("kind", "file")):
            raise Refusal("The name of an output has at most 250 characters, its kind is one lower-case word.", field="outputs")


def _refuse_inputs(inputs: list[dict[str, Any]]) -> None:
    if len(inputs) > MAX_NAMES:
        raise Refusal(f"At most {MAX_NAMES} inputs.", field="inputs")
    for need in (Need(**given) for given in inputs):
        if need.kind == DATASET and need.role and need.role not in ROLES:
            raise Refusal(f"A dataset's role is one of {', '.join(ROLES)}; not {need.role[:80]}.", field="inputs")
        if need.kind != DATASET and (need.name or (need.role and not _KIND.fullmatch(need.role))):
            raise Refusal("An artifact is asked for by its kind, one lower-case word such as model.", field="inputs")
        if need.name:
            try:
                ids.validate_slug(need.name)
            except ValidationError as error:
                raise Refusal(f"{need.name[:80]}: {error.messages[0]}", field="inputs") from error


def _refuse_names(names: list[str], pattern: re.Pattern[str], field: str, rule: str) -> None:
    if len(names) > MAX_NAMES:
        raise Refusal(f"At most {MAX_NAMES} {field}.", field=field)
    wrong = next((name for name in names if not pattern.fullmatch(name)), None)
    if wrong is not None:
        raise Refusal(f"{rule}; not {wrong[:80]}.", field=field)
