"""DDL that cannot be read: which column, which word, and what was meant."""

from __future__ import annotations

import pytest

import interpunct as ip
from interpunct.model.errors import SchemaError


def refused(ddl: str) -> SchemaError:
    with pytest.raises(SchemaError) as error:
        ip.Flow("auction").source("bids", ddl)
    return error.value


@pytest.mark.parametrize(
    ("ddl", "column", "said", "fix"),
    [
        ("ts timestmp, k bigint", "ts", "timestmp", "Did you mean timestamp?"),
        ("k bigint, `a b` DUBBLE not null", "a b", "DUBBLE", "Did you mean double?"),
        ("k bigint, x decimall(10,2)", "x", "decimall", "Did you mean decimal?"),
        ("k bigint, x array<array<inz>>, y int", "x", "inz", "Did you mean int?"),
        ("s struct<a: int, b: strng>", "s", "strng", "Did you mean string?"),
        ("k zzz", "k", "zzz", "Write one of them."),
    ],
)
def test_a_misspelt_type_is_named_with_the_one_that_is_near(
    ddl: str, column: str, said: str, fix: str
) -> None:
    error = refused(ddl)
    assert error.where == f"source 'bids', attribute '{column}'"
    assert error.expected.startswith("one of the types tinyint, smallint, int, bigint, float")
    assert (error.got, error.fix) == (repr(said), fix)


@pytest.mark.parametrize("ddl", ["k, ts timestamp", "ts timestamp, k", "k: bigint"])
def test_an_attribute_without_a_type_is_not_left_out(ddl: str) -> None:
    error = refused(ddl)
    assert error.where == "source 'bids', attribute 'k'"
    assert error.expected == "a name, a space and a Spark type"


def test_a_type_that_streams_do_not_carry_is_called_as_it_was_written() -> None:
    error = refused("at time")
    assert (error.where, error.got) == ("source 'bids', attribute 'at'", "TIME")
    assert "timestamp_ntz, decimal, array, struct" in error.expected
