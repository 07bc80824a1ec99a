"""Where each output attribute of an operator comes from, so that patterns can be rewritten.

>>> from interpunct.model.schema import Schema
>>> left, out = Schema.of("k bigint, a bigint"), Schema.of("key bigint, total bigint")
>>> m = AttributeMap({"key": [Origin(0, "k")]}, derived={"total": [Origin(0, "a")]})
>>> m.forward(Pattern.of(left, k=3), 0, out)
Pattern([key=3])
>>> m.forward(Pattern.of(left, k=3, a=1), 0, out) is None
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from interpunct.model.condition import ANY, Condition
from interpunct.model.errors import SchemaError
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema

Kind = Literal["identity", "renamed", "derived", "lost"]


class Origin(NamedTuple):
    """An attribute of one input."""

    port: int
    name: str


@dataclass(frozen=True, init=False)
class AttributeMap:
    """Carried: the output value *is* the value of each of its origins (a join key has one on each
    port, and so has every output of a union). Derived: computed from its origins. An output in
    neither is new, an input that is no origin is lost.
    """

    carried: tuple[tuple[str, tuple[Origin, ...]], ...]
    derived: tuple[tuple[str, frozenset[Origin]], ...]

    def __init__(
        self,
        carried: Mapping[str, Iterable[Origin]],
        derived: Mapping[str, Iterable[Origin]] | None = None,
    ) -> None:
        derived = derived or {}
        for name in carried:
            if name in derived:
                raise SchemaError(
                    "attribute map", "each output carried or derived", f"{name!r} as both",
                    "A value that is carried unchanged is not derived.",
                )  # fmt: skip
        object.__setattr__(self, "carried", tuple((n, tuple(o)) for n, o in carried.items()))
        object.__setattr__(self, "derived", tuple((n, frozenset(o)) for n, o in derived.items()))

    @classmethod
    def identity(cls, schema: Schema, ports: int = 1) -> AttributeMap:
        """Every attribute carried under its own name from every port."""
        return cls({name: [Origin(port, name) for port in range(ports)] for name in schema.names})

    def output_of(self, port: int, name: str) -> str | None:
        """The first output that carries this input attribute."""
        for output, origins in self.carried:
            if Origin(port, name) in origins:
                return output
        return None

    def input_of(self, output: str, port: int) -> str | None:
        """The first attribute of this input that the output carries."""
        for name, origins in self.carried:
            if name == output:
                return next((o.name for o in origins if o.port == port), None)
        return None

    def forward(self, pattern: Pattern, port: int, output_schema: Schema) -> Pattern | None:
        """A pattern over an input in terms of the output; None if some condition is not carried.

        Leaving such a condition out would widen the pattern, and a punctuation that is wider than
        what was promised promises too much.
        """
        conditions: dict[str, Condition] = {}
        for name, condition in pattern.conditions:
            output = self.output_of(port, name)
            if output is None:
                return None
            conditions[output] = conditions.get(output, ANY).intersect(condition)
        return Pattern(output_schema, conditions)

    def backward(self, pattern: Pattern, port: int, input_schema: Schema) -> Pattern | None:
        """A pattern over the output in terms of an input; None if some condition is not carried.

        Leaving one out would name input tuples whose results the pattern does not (safe
        propagation, Feedback section 4).
        """
        conditions: dict[str, Condition] = {}
        for output, condition in pattern.conditions:
            name = self.input_of(output, port)
            if name is None:
                return None
            conditions[name] = conditions.get(name, ANY).intersect(condition)
        return Pattern(input_schema, conditions)

    def kind(self, output: str, port: int) -> Kind:
        """How the output attribute comes from this input; ``lost`` if it does not."""
        names = [o.name for n, origins in self.carried for o in origins
                 if n == output and o.port == port]  # fmt: skip
        if names:
            return "identity" if output in names else "renamed"
        computed = any(o.port == port for n, origins in self.derived for o in origins
                       if n == output)  # fmt: skip
        return "derived" if computed else "lost"
