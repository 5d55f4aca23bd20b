"""What solvers see of a problem: a horizon of T knots and a terminal one, evaluated all at once.

    minimise    sum_t l_t(x_t, u_t) + l_T(x_T)
    subject to  x_0 given,  x_{t+1} = f_t(x_t, u_t),  e_t(x_t, u_t) = 0,  c_t(x_t, u_t) <= 0,  u_lower <= u <= u_upper

A state x = [q, v] has nx = nq + nv numbers; its tangent has ndx = 2 nv. All arrays are float64 and may have leading
axes of problems, which broadcast: xs (..., T + 1, nx), us (..., T, nu).

Knots with fewer controls than nu (an impact has none) are padded: their columns of Fu, Lxu and Eu and their entries of
Lu are zero, and Luu has ones on the padded diagonal, so that feedback and feedforward vanish there. Rows of constraints
that a knot does not have are padded with values that satisfy them (0 for equalities, -1 for inequalities) and zero
Jacobians.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..arrays import Array


@dataclass(kw_only=True)
class Values:
    """A horizon at xs and us.

    next: f_t(x_t, u_t), (..., T, nx); cost: l_t, (..., T + 1); equality: e_t, (..., T + 1, ne) or None;
    inequality: c_t, (..., T + 1, ni) or None.
    """

    next: Array
    cost: Array
    equality: Array | None = None
    inequality: Array | None = None


@dataclass(kw_only=True)
class Quadratic(Values):
    """The same with derivatives in the tangent space.

    Fx (..., T, ndx, ndx), Fu (..., T, ndx, nu): of next, in the tangent space at next.
    Lx (..., T + 1, ndx), Lu (..., T, nu), Lxx (..., T + 1, ndx, ndx), Lxu (..., T, ndx, nu), Luu (..., T, nu, nu): of
    the cost; the Hessians are Gauss-Newton's, or exact ones of the Lagrangian.
    Ex (..., T + 1, ne, ndx), Eu (..., T, ne, nu), Ix (..., T + 1, ni, ndx), Iu (..., T, ni, nu): of the constraints.

    The arrays belong to the horizon, which may write into them at its next `linearize`.
    """

    Fx: Array
    Fu: Array
    Lx: Array
    Lu: Array
    Lxx: Array
    Lxu: Array
    Luu: Array
    Ex: Array | None = None
    Eu: Array | None = None
    Ix: Array | None = None
    Iu: Array | None = None


class Horizon(Protocol):
    """A discretised optimal control problem, or a batch of them.

    ne, ni: how many equalities and inequalities a knot has at most;
    batch: the shape of the axes of problems that its data have, () if they are the same for all problems;
    x0: where it starts, (..., nx); u_lower, u_upper: limits of controls, (..., T, nu) or None;
    durations: of the knots in seconds, (T,); an impact lasts 0; exact: whether Hessians are exact, and want costates.
    """

    T: int
    nx: int
    ndx: int
    nu: int
    ne: int
    ni: int
    batch: tuple[int, ...]
    x0: Array
    u_lower: Array | None
    u_upper: Array | None
    durations: Array
    exact: bool

    def difference(self, x0: Array, x1: Array) -> Array:
        """The tangent (..., ndx) at x0 that leads to x1."""
        ...

    def integrate(self, x: Array, dx: Array) -> Array:
        """The state (..., nx) that a tangent leads to."""
        ...

    def guess(self, x0: Array) -> tuple[Array, Array]:
        """States and controls to start a solver with: x0 at every knot, and controls that hold it still if any do."""
        ...

    def values(self, xs: Array, us: Array) -> Values: ...

    def linearize(self, xs: Array, us: Array, costates: Array | None = None) -> Quadratic:
        """The horizon with derivatives. costates: p (..., T + 1, ndx), for exact Hessians, those of l_t + p_{t+1}.f_t:
        p_t is the gradient of the value function at x_t. Without them the Hessians are Gauss-Newton's."""
        ...

    def rollout(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        """A step of length alpha (...) along the policy: new states, new controls, the total cost (...).

            x_0 = x0 (+) (alpha - 1) gaps_0,  x_{t+1} = f_t(x_t, u_t) (+) (alpha - 1) gaps_{t+1},
            u_t = us_t - alpha k_t - K_t (x_t (-) xs_t),  clipped to u_lower and u_upper if `clip`

        k (..., T, nu), K (..., T, nu, ndx); gaps (..., T + 1, ndx) are f_{t-1} (-) xs_t, or None for no gaps. Where a
        motion diverges, its cost is not finite, and no error is raised. The arrays are new ones at each call.
        """
        ...

    def terms(self, xs: Array, us: Array) -> Mapping[str, Array]:
        """The cost by name of its terms, (..., T + 1) each."""
        ...

    def take(self, problems: Any) -> Horizon:
        """Some problems of a batch with one axis: an index array or a slice."""
        ...


def part(horizon: Horizon, problems: Any) -> Horizon:
    """The horizon of some problems; one whose data are the same for all problems is its own part."""
    return horizon.take(problems) if horizon.batch else horizon


@runtime_checkable
class Receding(Protocol):
    """A horizon of which windows can be taken, for receding horizons."""

    def window(self, start: int, T: int) -> Horizon:
        """Knots start to start + T, ended by the terminal cost. A cyclic problem goes on after its last knot; another
        repeats that knot."""
        ...
