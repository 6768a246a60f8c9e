"""A version is one hash, and the hash proves each of its files: to us, and to whoever reads only the document."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings

from workspaces import manifest, merkle

# The leaves and roots that Certificate Transparency's own implementations test themselves on (google/certificate-transparency, merkle_tree_test.cc).
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


@dataclass(frozen=True)
class File:
    path: str
    sha256: str
    bytes: int


def files(count: int) -> list[File]:
    return [File(f"part-{number}.csv", hashlib.sha256(str(number).encode()).hexdigest(), len(str(number))) for number in range(count)]


@pytest.mark.parametrize("count", range(1, 9))
def test_roots_are_those_of_rfc_6962(count: int) -> None:
    leaves = [merkle.leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES[:count]]
    assert merkle.root_of(leaves).hex() == ROOTS[count - 1]


def test_no_leaves_hash_to_the_hash_of_nothing() -> None:
    assert merkle.root_of([]) == hashlib.sha256(b"").digest()
    with pytest.raises(IndexError):
        merkle.proof_of([], 0)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 33, 100])
def test_every_file_is_proven_and_nothing_else(count: int) -> None:
    leaves = [merkle.leaf_hash(str(number).encode()) for number in range(count)]
    root = merkle.root_of(leaves)
    for place in range(count):
        proof = merkle.proof_of(leaves, place)
        assert merkle.is_proof(leaves[place], place, count, proof, root)
        assert not merkle.is_proof(merkle.leaf_hash(b"another"), place, count, proof, root)
        assert not merkle.is_proof(leaves[place], place, count, [*proof, root], root)
        assert not merkle.is_proof(leaves[place], count, count, proof, root)
        if proof:
            assert not merkle.is_proof(leaves[place], place, count, proof[:-1], root)


def test_an_inner_node_is_no_leaf() -> None:
    one, two = merkle.leaf_hash(b"1"), merkle.leaf_hash(b"2")
    assert merkle.root_of([merkle.leaf_hash(one + two)]) != merkle.root_of([one, two])


def test_a_hash_does_not_depend_on_the_order_in_which_files_come() -> None:
    found = files(7)
    for form in (manifest.LIST, manifest.TREE):
        assert manifest.hash_of(found, form) == manifest.hash_of(reversed(found), form)
    assert manifest.hash_of(found, manifest.LIST) != manifest.hash_of(found, manifest.TREE)


def test_an_old_hash_is_the_one_that_was_kept_then() -> None:
    """Taken from labsite as it was before there were trees."""
    old = [File("b/ü.csv", "ab" * 32, 3), File("a.csv", "cd" * 32, 12)]
    listed = sorted([file.path, file.sha256, file.bytes] for file in old)
    text = json.dumps(listed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert manifest.hash_of(old, manifest.LIST) == hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def check() -> Callable[[dict[str, object], bytes, str], bool]:
    """The program of the document, as its reader would take it."""
    text = (Path(settings.BASE_DIR) / "docs" / "version_proof.md").read_text()
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    names: dict[str, object] = {"__name__": "reader"}
    exec(found[1], names)  # noqa: S102  # the document's own program is what is tested
    program = names["check"]
    assert callable(program)
    return program


@pytest.mark.parametrize("count", [1, 2, 6, 21])
def test_the_documented_program_checks_what_is_handed_out(check: Callable[[dict[str, object], bytes, str], bool], count: int) -> None:
    found = files(count)
    root = manifest.hash_of(found, manifest.TREE)
    for number in range(count):
        proof = manifest.proof_of(found, f"part-{number}.csv")
        told: dict[str, object] = {"entry": proof.entry, "index": proof.place, "count": proof.count, "hashes": list(proof.hashes)}
        assert check(told, str(number).encode(), root)
        assert not check(told, b"another", root)
        assert not check(told, str(number).encode(), root[::-1])
        assert not check({**told, "entry": proof.entry.replace("part", "port")}, str(number).encode(), root)
