"""Import, record hashes and overlap: `make bench BENCH=overlap ARGS=[--large]`.

Import: a table is received and kept as a version, against the same process reading, hashing and writing the same bytes to the same disk. With
`--large` it has 1,000,000 records in 1 GB, else a tenth of that, which the transaction that keeps it
outweighs. Then the process that hashes its records; of both the most memory that they held.
Overlap: 100,000 questions against 10,000 held out, of which near-duplicates were planted (one word of thirty is another, missing or more, or all are
capitals), and as many relatives beside them, of whose words a quarter is another: whoever names one of those, or a pair by chance, is not precise.
Targets: import at least half as fast as the bare loop, under 300 MB; 100,000 against 10,000 under 60 s with recall at least 0.95.
"""

import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.conf import settings  # noqa: E402  # after the settings are read, as everything below
from django.core.management import call_command  # noqa: E402

from runs.overlap import compare  # noqa: E402
from runs.overlap.sidecar import Sidecar, Source  # noqa: E402
from tests.factories_runs import Laboratory, make_laboratory  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces.commands.blob import receive_file  # noqa: E402
from workspaces.commands.dataset import create_dataset, import_dataset_version  # noqa: E402

MIB = 1_048_576
COLUMNS = 50
LARGE = "--large" in sys.argv
RECORDS = 1_000_000 if LARGE else 100_000
TRAINED, HELD_OUT, PLANTED = 100_000, 10_000, 1_000
WORDS, LENGTH = 20_000, 30
IMPORT_SHARE, MOST_MB, OVERLAP_SECONDS, RECALL = 0.5, 300, 60.0, 0.95


def main() -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory("bench")
    with tempfile.TemporaryDirectory(dir=settings.LABSITE_HOME) as folder:
        import_speed(laboratory, Path(folder))
        overlap(Path(folder))
    leave()


def import_speed(laboratory: Laboratory, folder: Path) -> None:
    table = folder / "table.csv"
    write_table(table)
    size = table.stat().st_size
    bare, imported = [], []
    for number in range(3):
        began = time.perf_counter()
        digest = hashlib.sha256()
        with (folder / "copy").open("wb") as copy:
            for chunk in chunks(table):
                digest.update(chunk)
                copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
        bare.append(time.perf_counter() - began)
        (folder / "copy").unlink()
        with laboratory.opened():
            dataset = create_dataset(actor=laboratory.owner, slug=f"table-{number}")
            began = time.perf_counter()
            file = receive_file("table.csv", chunks(table, lead=b"" if number == 0 else b"\n" * number))
            import_dataset_version(actor=laboratory.owner, dataset=dataset, role="train", files=[file])
            imported.append(time.perf_counter() - began)
    share = min(bare) / min(imported)
    print(f"import of {RECORDS:,} records, {size / MIB:,.0f} MiB: {min(imported):.2f} s, bare loop {min(bare):.2f} s,", end=" ")
    verdict = judged("import", share >= IMPORT_SHARE) if LARGE else "not judged of so little"
    print(f"{share:.2f} of its speed, at least {IMPORT_SHARE}: {verdict}")
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of this process, with Django, until now
    print(f"the process that imported held at most {held:.0f} MB, under {MOST_MB}: {judged('memory of the import', held < MOST_MB)}")
    answer, seconds, peak = ask({"do": "index", "files": [["table.csv", str(table)]], "out": str(folder / "records")})
    kept = (folder / "records").stat().st_size
    print(f"record hashes of {answer['records']:,}: {seconds:.1f} s, {kept / MIB:.1f} MiB kept, at most {peak:.0f} MB in memory,", end=" ")
    print(f"under {MOST_MB}: {judged('memory', peak < MOST_MB)}")
    table.unlink()


def overlap(folder: Path) -> None:
    source = random.Random(7)  # noqa: S311  # the same bench each time  # noqa: S311  # test data, the same each time
    words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 9))) for _ in range(WORDS)]
    held = [sentence(source, words) for _ in range(HELD_OUT)]
    trained = [sentence(source, words) for _ in range(TRAINED)]
    places = source.sample(range(TRAINED), PLANTED)
    for number, place in enumerate(places):
        trained[place] = changed(source, held[number], words, number)
    for number, place in enumerate(source.sample(sorted(set(range(TRAINED)) - set(places)), PLANTED)):
        parts = held[number].split()
        for at in source.sample(range(LENGTH), LENGTH // 4):
            parts[at] = source.choice(words)
        trained[place] = " ".join(parts)
    sides = []
    spent = 0.0
    for name, lines in (("trained", trained), ("held", held)):
        (folder / f"{name}.txt").write_text("\n".join(lines))
        files = [[f"{name}.txt", str(folder / f"{name}.txt")]]
        _, seconds, _ = ask({"do": "index", "files": files, "out": str(folder / f"{name}.records")})
        spent += seconds
        sides.append({"sidecar": str(folder / f"{name}.records"), "files": files})
    answer, seconds, peak = ask({"do": "compare", "pairs": [{"version": sides[0], "holdout": sides[1]}]})
    spent += seconds
    found = answer["exact"] + answer["near"]
    named = everything_named(sides)
    assert len(named) == found
    planted = {(place, number) for number, place in enumerate(places)}
    recall, precision = len(named & planted) / PLANTED, len(named & planted) / max(1, len(named))
    print(f"{TRAINED:,} against {HELD_OUT:,}: {spent:.1f} s with reading both, {seconds:.1f} s of it comparing, {peak:.0f} MB,", end=" ")
    print(f"under {OVERLAP_SECONDS:.0f} s: {judged('overlap', spent < OVERLAP_SECONDS)}")
    words_of = f"{found:,} found, {PLANTED:,} planted: recall {recall:.3f}, at least {RECALL}, precision {precision:.3f}:"
    print(words_of, judged("recall", recall >= RECALL))


def everything_named(sides: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """Every pair that a check finds, of which it keeps a hundred."""
    compare.MOST_PAIRS = 10**9
    version, holdout = (
        compare.Side(Sidecar(Path(side["sidecar"])), [Source(path, Path(place)) for path, place in side["files"]]) for side in sides
    )
    return {(pair.record, pair.other) for pair in compare.compare(version, holdout).pairs}


def changed(source: random.Random, text: str, words: list[str], number: int) -> str:
    """A near-duplicate of a kind that goes round: one word is another, capitals, one word less, one more at the end."""
    parts = text.split()
    place = source.randrange(len(parts))
    if number % 4 == 0:
        parts[place] = source.choice(words)
    elif number % 4 == 1:
        parts = text.upper().split()
    elif number % 4 == 2:
        del parts[place]
    else:
        parts.append(source.choice(words))
    return " ".join(parts)


def sentence(source: random.Random, words: list[str]) -> str:
    return " ".join(source.choices(words, k=LENGTH))


def write_table(path: Path) -> None:
    source = random.Random(3)  # noqa: S311  # as above  # noqa: S311  # test data, the same each time
    with path.open("w") as file:
        file.write(",".join(["id", *(f"feature_{number}" for number in range(COLUMNS))]) + "\n")
        values = [f"{source.random() * 10 ** source.randint(-3, 5):.15g}" for _ in range(10_007)]
        for number in range(RECORDS):
            start = source.randrange(len(values) - COLUMNS)
            file.write(f"{number}," + ",".join(values[start : start + COLUMNS]) + "\n")


def chunks(path: Path, lead: bytes = b"") -> Iterator[bytes]:
    if lead:
        yield lead
    with path.open("rb") as file:
        while chunk := file.read(MIB):
            yield chunk


def ask(request: dict[str, Any]) -> tuple[dict[str, Any], float, float]:
    """The answer of the process, the seconds from its start to its end, and the most MB that it held. It prints the CPU time of its own: on a machine
    that has other work, the rest is waiting."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "runs.overlap.process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps({**request, "most_bytes": 2 * 1024**3, "seconds": 3600}).encode())
    process.stdin.close()
    answer = json.loads(process.stdout.readline())
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, f"the process ended with {status}"
    print(f"  {request['do']}: {used.ru_utime + used.ru_stime:.1f} s of CPU")
    return answer, time.perf_counter() - began, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
