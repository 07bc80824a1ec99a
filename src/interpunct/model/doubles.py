"""Doubles as Java has them, where Polars goes its own way.

>>> import polars as pl
>>> frame, x = pl.DataFrame({"x": [49.0, 2.675, 1e20]}), pl.col("x")
>>> frame.select(quotient(x, pl.lit(49.0))).to_series()[0]
1.0
>>> frame.select(rounded(x, 2, "half_away_from_zero")).to_series().to_list()
[49.0, 2.68, 1e+20]
>>> frame.select(java_text(x)).to_series().to_list()
['49.0', '2.675', '1.0E20']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import polars as pl

Rounding = Literal["half_away_from_zero", "half_to_even"]

_PLAIN = (1e-3, 1e7)  # from where to where Java writes a double without an exponent
_DIGITS = 18  # one more than a double has, of those that say what it is
_WIDEST = 38  # digits of a decimal
_SURE = 1e14  # up to where a product is known well enough to see how far from a half it is


def quotient(dividend: pl.Expr, divisor: pl.Expr) -> pl.Expr:
    """Each divided by each. Polars multiplies by the inverse of a single number, which is another
    number: so a single one is made as many as there are dividends."""
    return dividend / (divisor + dividend.is_null().cast(pl.Float64))


def float_remainder(dividend: pl.Expr, divisor: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Exactly what is left over, with the sign of the dividend."""
    return pl.map_batches([dividend, divisor], _fmod, dtype, is_elementwise=True)


def _fmod(pair: Sequence[pl.Series]) -> pl.Series:
    dividend, divisor = pair
    rows = len(divisor) if len(dividend) == 1 else len(dividend)
    if len(dividend) != rows:
        dividend = dividend.new_from_index(0, rows)
    if len(divisor) != rows:
        divisor = divisor.new_from_index(0, rows)
    with np.errstate(invalid="ignore"):  # of what is infinite nothing is left: NaN
        left_over: pl.Series = np.fmod(dividend, divisor)  # type: ignore[assignment]
    return left_over


def rounded(value: pl.Expr, places: int, mode: Rounding) -> pl.Expr:
    """Rounded by the digits it is written with, to `places` of them behind the point: 2.675 is
    2.68, though what is stored is a little less."""
    if places <= 0:
        unit = pl.lit(10.0**-places)
        flat = quotient(value, unit).round(0, mode=mode) * unit
        return pl.when(flat != 0).then(flat).otherwise(flat.abs())  # digits know no -0.0
    return value.map_batches(
        partial(_rounded, places=places, mode=mode), pl.Float64, is_elementwise=True
    )


def _rounded(values: pl.Series, places: int, mode: Rounding) -> pl.Series:
    """What is near to a half, or large, is looked at digit by digit."""
    size = values.abs() * 10.0**places
    near = ((size - size.floor()) - 0.5).abs() <= size * 1e-15
    flat = values.round(places, mode=mode)
    flat = flat.zip_with(flat != 0, flat.abs())
    return _but(flat, near | (size > _SURE), lambda at: _by_digits(values.gather(at), places, mode))


def _by_digits(values: pl.Series, places: int, mode: Rounding) -> pl.Series:
    scale = min(places + _DIGITS, _WIDEST)
    few = values.abs() < 10.0 ** (_WIDEST - scale - 1)  # others have no digits beyond these places
    digits = values.cast(pl.String).cast(pl.Decimal(_WIDEST, scale), strict=False)
    return digits.round(places, mode=mode).cast(pl.Float64).zip_with(few, values)


def java_text(value: pl.Expr) -> pl.Expr:
    """As `Double.toString`: 1.0E20, 3.5E-5, Infinity."""
    return value.map_batches(_java_text, pl.String, is_elementwise=True)


def _java_text(values: pl.Series) -> pl.Series:
    size, text = values.abs(), values.cast(pl.String)
    text = (
        text.replace({"inf": "Infinity", "-inf": "-Infinity"}) if size.is_infinite().any() else text
    )
    odd = ((size < _PLAIN[0]) | (size >= _PLAIN[1])) & (size != 0) & size.is_finite()
    return _but(text, odd, lambda at: _scientific(text.gather(at)))


def _but(values: pl.Series, where: pl.Series, other: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """These values, but others at a few places."""
    places = where.arg_true()
    return values.scatter(places, other(places)) if len(places) else values


def _scientific(text: pl.Series) -> pl.Series:
    """One digit before the point, and E: of ``0.00035``, ``12345678.0`` or ``1.5e-7``."""
    parts = text.str.extract_groups(r"^(-?)0*(\d*)\.?(\d*?)0*(?:e(.+))?$").struct.unnest()
    sign, whole, fraction = (parts.to_series(k).fill_null("") for k in range(3))
    power = parts.to_series(3).cast(pl.Int64).fill_null(0)
    digits = whole + fraction
    significant = digits.str.strip_chars_start("0")
    zeros = digits.str.len_bytes().cast(pl.Int64) - significant.str.len_bytes()
    exponent = power + whole.str.len_bytes().cast(pl.Int64) - zeros - 1
    rest = significant.str.slice(1).str.strip_chars_end("0")
    rest = rest.zip_with(rest != "", pl.repeat("0", len(rest), eager=True))
    return sign + significant.str.slice(0, 1) + "." + rest + "E" + exponent.cast(pl.String)
