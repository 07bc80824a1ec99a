"""Which logical merge the properties of the inputs call for (LMerge section IV-D).

         insert-only   ordered   and                    state
    R0   yes           strict                           two numbers
    R1   yes           yes       deterministic ties     a count for each input
    R2   yes           yes       keyed                  the events at one Vs
    R3                           keyed                  events that are not final
    R4                                                  the same, with duplicates

A stream whose Vs always increase is ordered, keyed, and has no ties.

>>> choose([Properties(ordered=True, keyed=True), Properties(ordered=True, keyed=True)])
'R2'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from interpunct.model.errors import FlowError
from interpunct.model.properties import Properties

# What each variant needs of every input, from the cheapest variant to the most general.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "R0": ("insert_only", "ordered", "strict"),
    "R1": ("insert_only", "ordered", "deterministic"),
    "R2": ("insert_only", "ordered", "keyed"),
    "R3": ("keyed",),
    "R3-": ("keyed",),
    "R4": (),
}
CHOSEN = ("R0", "R1", "R2", "R3", "R4")
REMEMBERING = ("R3", "R4")  # those that know which input has shown what


def choose(inputs: Sequence[Properties], *, remembering: bool = False) -> str:
    """The cheapest variant that is right for these inputs (and remembers what each has shown)."""
    return next(v for v in (REMEMBERING if remembering else CHOSEN) if not missing(v, inputs))


def reason(variant: str, inputs: Sequence[Properties], *, remembering: bool = False) -> str:
    """Why this variant: what all inputs are, and what the next cheaper one would need."""
    has = [n.replace("_", "-") for n in NEEDS[variant]]
    holds = f"inputs are {', '.join(has)}" if has else "nothing is known that would help"
    cheaper = [v for v in CHOSEN[: CHOSEN.index(variant.rstrip("-"))] if missing(v, inputs)]
    if not cheaper:
        return f"{holds}; the policy needs memory" if remembering else holds
    number, name = missing(cheaper[-1], inputs)[0]
    return f"{holds}; {cheaper[-1]} needs {name.replace('_', '-')}, which input {number} is not"


def missing(variant: str, inputs: Sequence[Properties]) -> list[tuple[int, str]]:
    """The inputs, and the properties each lacks for the variant."""
    return [
        (number, name)
        for number, properties in enumerate(map(implied, inputs))
        for name in NEEDS[variant]
        if not getattr(properties, name)
    ]


def checked(
    where: str, variant: str | None, inputs: Sequence[Properties], *, remembering: bool = False
) -> str:
    """The variant to use: the one asked for, if it is right for these inputs, or the cheapest."""
    if variant is None:
        return choose(inputs, remembering=remembering)
    if variant not in NEEDS:
        raise FlowError(where, f"a variant among {', '.join(NEEDS)}", repr(variant), "Take one.")
    lacking = missing(variant, inputs)
    if lacking:
        number, name = lacking[0]
        raise FlowError(
            where, f"inputs that are {name.replace('_', '-')}, which {variant} needs",
            f"input {number} of which is known: {inputs[number]}",
            f"Declare the property if it holds, or take {choose(inputs)}.",
        )  # fmt: skip
    return variant


def implied(properties: Properties) -> Properties:
    """With what follows from Vs that always increase."""
    if not properties.strict:
        return properties
    return replace(properties, ordered=True, keyed=True, deterministic=True)
