"""Logical merge: one stream from several that are equivalent but physically different (LMerge).

    in 0:  ins(B,8,∞) ins(A,6,12)       adj(B,8,∞,10) stable(11)
    in 1:  ins(A,6,7) ins(B,8,15) adj(A,6,7,12)   adj(B,8,15,10)
    out:   ins(A,6,7) ins(B,8,15)   adj(A,6,7,12) adj(B,8,15,10) stable(11)

`lmerge` builds the variant that the inputs' properties call for; each is in a file of its own.

>>> from interpunct.model.elements import describe, element_schema, elements, insert, stable
>>> from interpunct.model.page import Page
>>> from interpunct.model.schema import Schema
>>> schema = element_schema(Schema.of("user string"))
>>> keyed = Stream(schema, Properties(insert_only=False, keyed=True))
>>> merge = lmerge("leases", [keyed, keyed])
>>> merge.variant
'R3'
>>> def shown(port, *rows):
...     pages = merge.on_page(port, Page(schema, elements(schema, rows))).pages
...     return "; ".join(describe(schema, page.frame) for _, page in pages)
>>> shown(0, insert("A", 6, 7))
'insert(A, 6, 7)'
>>> shown(1, insert("A", 6, 12), stable(11))
'adjust(A, 6, 7, 12), stable(11)'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interpunct.model.errors import FlowError
from interpunct.model.properties import Properties
from interpunct.operators.contract import Stream
from interpunct.operators.lmerge_base import LogicalMerge, Report
from interpunct.operators.lmerge_choice import checked
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.operators.lmerge_r0 import LogicalMergeR0
from interpunct.operators.lmerge_r1 import LogicalMergeR1
from interpunct.operators.lmerge_r2 import LogicalMergeR2
from interpunct.operators.lmerge_r3 import LogicalMergeR3
from interpunct.operators.lmerge_r3_minus import LogicalMergeR3Minus
from interpunct.operators.lmerge_r4 import LogicalMergeR4
from interpunct.operators.state import State

__all__ = ["VARIANTS", "LogicalMerge", "MergePolicy", "Properties", "Report", "lmerge"]

VARIANTS: Mapping[str, type[LogicalMerge]] = {
    kind.variant: kind
    for kind in (
        LogicalMergeR0,
        LogicalMergeR1,
        LogicalMergeR2,
        LogicalMergeR3,
        LogicalMergeR3Minus,
        LogicalMergeR4,
    )
}


def lmerge(
    name: str,
    inputs: Sequence[Stream],
    variant: str | None = None,
    policy: MergePolicy | None = None,
    state: State | None = None,
    *,
    fast_forward: bool = False,
) -> LogicalMerge:
    """The merge these inputs call for, or the one asked for if they allow it.

    With `fast_forward` it tells slower inputs what they need not make any more.
    """
    for number, stream in enumerate(inputs):
        if stream.schema != inputs[0].schema:
            raise FlowError(
                name, f"inputs of one schema ({inputs[0].schema.ddl})",
                f"({stream.schema.ddl}) on input {number}", "Project them to the same attributes.",
            )  # fmt: skip
    known = [s.properties for s in inputs]
    remembering = policy is not None and not policy.stateless
    chosen = checked(name, variant, known, remembering=remembering)
    merge = VARIANTS[chosen](name, inputs, policy, state)
    merge.fast_forward = fast_forward
    return merge
