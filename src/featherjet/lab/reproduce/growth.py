"""Operations on chains as a polynomial in the number of joints: counted at a few sizes, extrapolated to all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...model.builtin import auto_tree
from ...model.tree import Tree
from ..bench.robots import SKEW
from .algorithms import Algorithm, TracedAlgorithm

SAMPLED = {1: ((5, 6), 8), 2: ((5, 7, 9), 10), 3: ((5, 6, 7, 8), 9)}  # degree -> sizes to fit, and one to check


@dataclass(frozen=True)
class Growth:
    """Operations of an algorithm on a chain of N joints, as a polynomial in N.

    All links of the chain are alike, so that counts are polynomials from a few joints on. `error` is the relative error
    at a size that was not fitted.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    error: float

    @staticmethod
    def of(algorithm: Algorithm) -> Growth:
        sizes, check_size = SAMPLED[algorithm.degree]
        trees = [Tree(auto_tree(n, skew=SKEW)) for n in (*sizes, check_size)]
        *counts, check = (TracedAlgorithm(algorithm, tree).instructions for tree in trees)
        fitted = Growth(sizes, tuple(counts), 0.0)
        return Growth(sizes, tuple(counts), abs(fitted.at(check_size) - check) / check)

    def at(self, n: int) -> int:
        """The value at N = n, by Lagrange's formula in exact arithmetic."""
        total = Fraction(0)
        for i, c in zip(self.sizes, self.counts, strict=True):
            term = Fraction(c)
            for j in self.sizes:
                term *= Fraction(n - j, i - j) if j != i else 1
            total += term
        return round(total)
