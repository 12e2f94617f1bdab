"""Matches the operators of two runs."""

import dataclasses

from opspeedup.operators import Times

_NONE = (Times(), "")


@dataclasses.dataclass(frozen=True)
class Row:
    """An operator in both runs, or in one: then the other's count is 0."""
    model: str
    operator: str
    base: Times
    base_where: str
    base_share: float  # Of the run's time in operators; 0 to 1.
    other: Times
    other_where: str
    other_share: float

    @property
    def ratio(self):
        """Mean of the base by mean of the other: above 1, the other is faster.
        None where one run has none, or took no time."""
        if not (self.base.count and self.other.count and self.other.mean):
            return None
        return self.base.mean / self.other.mean


def _sum(times):
    return sum(t.total for t, _ in times.values())


def rows(model, base, other):
    """What two runs of `model` did, what took longest in the base first."""
    base_us, other_us = _sum(base), _sum(other)
    result = []
    for operator in base.keys() | other.keys():
        (b, b_where), (o, o_where) = (base.get(operator, _NONE),
                                      other.get(operator, _NONE))
        result.append(Row(model, operator, b, b_where, b.total / (base_us or 1),
                          o, o_where, o.total / (other_us or 1)))
    result.sort(key=lambda row: (-row.base.total, -row.other.total,
                                 row.operator))
    return result


@dataclasses.dataclass(frozen=True)
class Total:
    """A model's operators together; times in microseconds."""
    model: str
    base_count: int
    base_us: float
    other_count: int
    other_us: float
    matched: int  # Operators that both runs have.
    base_only: int
    other_only: int
    ratio: float | None


def total(model, model_rows):
    """The ratio is that of the matched operators' time if each ran as often as
    in the base: runs of different numbers of steps compare all the same."""
    matched = [r for r in model_rows if r.base.count and r.other.count]
    base = sum(r.base.total for r in matched)
    other = sum(r.base.count * r.other.mean for r in matched)
    return Total(
        model,
        sum(r.base.count for r in model_rows),
        sum(r.base.total for r in model_rows),
        sum(r.other.count for r in model_rows),
        sum(r.other.total for r in model_rows),
        len(matched),
        sum(1 for r in model_rows if not r.other.count),
        sum(1 for r in model_rows if not r.base.count),
        base / other if other else None)
