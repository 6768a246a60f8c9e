"""What reading a file by its records gives. Plain values."""

from dataclasses import dataclass
from hashlib import blake2b

MIB = 1_048_576
LONGEST_RECORD = 16 * MIB  # a longer line is compared by its bytes alone
LONGEST_PARSED = MIB  # a longer line of JSON is compared as text
WHOLE_FILE = 64 * MIB  # of formats that cannot be read piece by piece


class Unreadable(ValueError):  # an answer: the file is not what its name says
    """The file cannot be read by its records; the message says where it fails. It is compared as one record then."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file. `exact` and `near` are 64-bit hashes of its normal forms, `prose` the text that near-duplicates are looked for in,
    `measured` its numbers of three digits and more with their names, where there are enough of them to know a record by.

    `place` and `length` are bytes in the file; of a format whose records lie in several places at once, `place` is the row and `length` 0.
    """

    exact: int
    near: int
    place: int
    length: int
    prose: str = ""
    measured: tuple[str, ...] = ()


def hashed(content: bytes) -> int:
    """64 bits: among a million records against a million, two different ones are taken for the same once in 18 million checks."""
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
