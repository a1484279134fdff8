"""Tests Hadoop's credentials files: known bytes, a round trip, and damaged files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.wire import credentials
from howdah.wire.credentials import Credentials, Token

TOKEN = Token(b"\x01\x02\x03", b"pass", "KIND", "host:1")
# HDTS, version 0; one token: alias, identifier, password, kind, service, each after its length; one secret key.
WRITABLE = b"HDTS\x00\x01\x05alias\x03\x01\x02\x03\x04pass\x04KIND\x06host:1\x01\x01k\x02vv"
# HDTS, version 1; the message's length; tokens = 1 {alias = 1, token = 2 {1, 2, 3, 4}}; secrets = 2 {alias = 1, 3}.
PROTOBUF = (
    b"HDTS\x01" b"\x2d" b"\x0a\x22"
    b"\x0a\x05alias" b"\x12\x19" b"\x0a\x03\x01\x02\x03" b"\x12\x04pass" b"\x1a\x04KIND" b"\x22\x06host:1"
    b"\x12\x07" b"\x0a\x01k" b"\x1a\x02vv"
)  # fmt: skip
HELD = Credentials({"alias": TOKEN}, {"k": b"vv"})


def test_version_0_by_hand() -> None:
    assert credentials.parse(WRITABLE) == HELD
    assert HELD.to_bytes() == WRITABLE


def test_version_1_by_hand() -> None:
    assert credentials.parse(PROTOBUF) == HELD


names = st.text(max_size=20)
tokens = st.builds(Token, st.binary(max_size=400), st.binary(max_size=400), names, names)


@given(st.dictionaries(names, tokens), st.dictionaries(names, st.binary(max_size=70000)))
def test_credentials_are_read_back(held: dict[str, Token], secrets: dict[str, bytes]) -> None:
    both = Credentials(held, secrets)
    assert credentials.parse(both.to_bytes()) == both


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (127, b"\x7f"), (-112, b"\x90"), (128, b"\x8f\x80"), (255, b"\x8f\xff"), (256, b"\x8e\x01\x00"),
        (-113, b"\x87\x70"), (-256, b"\x87\xff"), (1 << 40, b"\x8a\x01\x00\x00\x00\x00\x00"),
    ],
)  # fmt: skip
def test_hadoop_integers_are_read_back(value: int, data: bytes) -> None:
    assert credentials.write_vlong(value) == data
    assert credentials._Cursor(data).vlong() == value


@pytest.mark.parametrize("whole", [WRITABLE, PROTOBUF])
def test_every_cut_is_noticed(whole: bytes) -> None:
    for length in range(len(whole)):
        with pytest.raises(ValueError, match="adoop credentials"):
            credentials.parse(whole[:length])


def test_other_files_and_versions_are_refused() -> None:
    with pytest.raises(ValueError, match="not a Hadoop credentials file"):
        credentials.parse(b"PK\x03\x04 and so on")
    with pytest.raises(ValueError, match="unknown version 7"):
        credentials.parse(b"HDTS\x07")


def test_a_delegation_token_says_when_it_ends_for_good() -> None:
    names = b"\x05alice\x02rm\x00"
    issued, last = credentials.write_vlong(1_700_000_000_000), credentials.write_vlong(1_700_604_800_000)
    whole = b"\x00" + names + issued + last + b"\x07\x02"
    assert credentials.last_date(Token(whole, b"", "HDFS_DELEGATION_TOKEN", "")) == 1_700_604_800.0
    for strange in (b"", whole[:-9], b"\x01" + whole[1:]):
        assert credentials.last_date(Token(strange, b"", "HDFS_DELEGATION_TOKEN", "")) == 0.0


def test_secrets_are_not_shown() -> None:
    assert "pass" not in repr(HELD)
    assert "vv" not in repr(HELD)


def test_tokens_by_kind() -> None:
    assert HELD.of_kind("KIND") == [TOKEN]
    assert HELD.of_kind("OTHER") == []
