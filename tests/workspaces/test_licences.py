"""Licences: people write them in many ways, one spelling is kept, and what nobody knows is said."""

import pytest

from workspaces.licences import NOT_KNOWN, BadLicence, address_of, expression_of, is_expression


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("cc-by-4.0", "CC-BY-4.0"),
        ("CC BY 4.0", "CC-BY-4.0"),
        ("  mit  or  apache-2.0 ", "MIT OR Apache-2.0"),
        ("(MIT AND CC0-1.0)", "(MIT AND CC0-1.0)"),
        ("GPL-2.0-or-later WITH Classpath-exception-2.0", "GPL-2.0-or-later WITH Classpath-exception-2.0"),
        ("LicenseRef-hospital-contract-7", "LicenseRef-hospital-contract-7"),
        ("Not  known", NOT_KNOWN),
        ("unknown", NOT_KNOWN),
        ("NOASSERTION", NOT_KNOWN),
        ("   ", ""),
    ],
)
def test_one_spelling_is_kept(written: str, kept: str) -> None:
    assert expression_of(written) == kept
    assert expression_of(kept) == kept
    assert is_expression(kept) == bool(kept)


@pytest.mark.parametrize("written", ["the contract with the clinic", "MIT OR", "CC-BY-4.0;", "<b>", "MIT\x00", "(" * 150, "LicenseRef-ä"])
def test_what_is_no_expression_is_refused_with_a_way_out(written: str) -> None:
    with pytest.raises(BadLicence, match="LicenseRef-"):
        expression_of(written)
    assert not is_expression(written)


def test_a_refusal_proposes_a_name_that_is_taken() -> None:
    with pytest.raises(BadLicence) as refused:
        expression_of("the contract, with the clinic!")
    proposed = str(refused.value).split("LicenseRef-")[1].split(" ")[0]
    assert expression_of(f"LicenseRef-{proposed}") == "LicenseRef-the-contract-with-the-clinic"


def test_only_a_single_listed_licence_has_an_address() -> None:
    assert address_of("CC-BY-4.0") == "https://spdx.org/licenses/CC-BY-4.0"
    assert [address_of(text) for text in ("", NOT_KNOWN, "MIT OR Apache-2.0", "LicenseRef-x", "CC BY 4.0")] == [""] * 5
