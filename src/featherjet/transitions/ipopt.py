"""IPOPT, through cyipopt."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import MissingExtra
from .search import Search

Array = np.ndarray
UNBOUNDED = 2e19  # IPOPT's infinity
SILENT = {"print_level": 0, "sb": "yes"}


class _Adapter:
    """The search with the methods that IPOPT calls; an exception of a callback is kept until IPOPT has returned."""

    def __init__(self, search: Search) -> None:
        self.search, self.raised, self.at = search, None, search.start
        self.lower = np.tril_indices(search.start.size)

    def objective(self, y: Array) -> float:
        self.at = y.copy()
        return self.search.objective(y)[0]

    def gradient(self, y: Array) -> Array:
        self.at = y.copy()
        return self.search.objective(y)[1]

    def constraints(self, y: Array) -> Array:
        return np.concatenate([self.search.values(w, y) for w in ("equal", "unequal")])

    def jacobian(self, y: Array) -> Array:
        return np.concatenate([self.search.jacobian(w, y) for w in ("equal", "unequal")]).ravel()

    def hessianstructure(self) -> tuple[Array, Array]:
        return self.lower

    def hessian(self, y: Array, multipliers: Array, factor: float) -> Array:
        return factor * self.search.hessian(y)[self.lower]

    def intermediate(self, *_: Any) -> bool:
        try:
            self.search.accept(self.at)
        except BaseException as raised:  # it would be lost in IPOPT's C code
            self.raised = raised
            return False
        return True


def run_ipopt(search: Search) -> tuple[str, bool]:
    """Run IPOPT once; return its message and whether it converged."""
    try:
        from cyipopt import Problem as Nonlinear  # type: ignore[attr-defined]
    except ImportError:
        raise MissingExtra("solver 'ipopt'", "cyipopt", "ipopt") from None
    adapter = _Adapter(search)
    count = [search.values(w, search.start).size for w in ("equal", "unequal")]
    n, m = search.start.size, sum(count)
    high = np.concatenate([np.zeros(count[0]), np.full(count[1], UNBOUNDED)])
    nlp: Any = Nonlinear(n, m, adapter, np.full(n, -UNBOUNDED), np.full(n, UNBOUNDED), np.zeros(m), high)
    # Gauss-Newton ignores the curvature of conditions, which matters to IPOPT: where there are any, it estimates both.
    estimated = {"hessian_approximation": "limited-memory", "limited_memory_max_history": 30} if m else {}
    for name, value in {**SILENT, "tol": 1e-6, "max_iter": 10 * search.limit, **estimated}.items():
        nlp.add_option(name, value)
    y, info = nlp.solve(search.start)
    if adapter.raised is not None:
        raise adapter.raised
    search.consider(np.asarray(y))
    return info["status_msg"].decode(), info["status"] in (0, 1)
