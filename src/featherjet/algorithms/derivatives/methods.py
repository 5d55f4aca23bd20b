"""Every way to compute a derivative: what users choose from by name, and what compilers can trace.

docs/methods.md has a paragraph on each. To add one: a line here; `register` is for those that a later layer brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...errors import InputError, UnknownName
from ..dynamics import balafoutis as tensors
from ..dynamics import factored, minv, rnea
from . import (
    abacr,
    balafoutis,
    chain_rule,
    direct,
    fdsva,
    forward_hessian,
    gradients,
    hessian,
    idsva,
    idsva_body,
    lagrangian,
    numeric,
    one_factor,
)
from . import pinocchio as original
from .forward_hessian import hessian_alone


@dataclass(frozen=True, eq=False)
class Method:
    """One way to compute a quantity.

    function(scan, q, v, a, fext) -> torques, or InverseDynamicsDerivatives of the tree,
    function(scan, q, v, tau, fext) -> (ForwardDynamicsDerivatives, margins of M), function(scan, q) -> (M^-1, margins);
    Hessians take the vector w before fext.
    effort is in n degrees of freedom and the depth d of the tree. `mimic`: whether it treats mimicking joints;
    `traced`: whether it runs on a compiler's scalars; `sized`: the methods that it stands for, that of small robots and
    that of larger ones.
    """

    name: str
    quantity: str
    paper: str
    effort: str
    limits: str
    function: Callable[..., Any]
    mimic: bool = True
    traced: bool = True
    sized: tuple[str, str] | None = None


KEYS = """\
n degrees of freedom, d the depth of the tree; docs/methods.md has a paragraph on each method
[IDSVA] Singh, Russell, Wensing 2021; [RSS18] Carpentier, Mansard 2018; [BP] Guenter, Rose 2000;
[RBDA] Featherstone 2008"""


class Methods(tuple[Method, ...]):
    """Methods, shown as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        heads = ("method", "effort", "paper", "limits")
        rows = [(m.name, m.effort, m.paper, m.limits) for m in self]
        widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]

        def line(cells: Iterable[str]) -> str:
            return "  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

        out: list[str] = []
        for quantity in dict.fromkeys(m.quantity for m in self):
            out += [quantity, line(heads)]
            out += [line(row) for m, row in zip(self, rows, strict=True) if m.quantity == quantity]
        return "\n".join([*out, KEYS])


EXACT, NO_MIMIC = "none", "no mimicking joints"

ID, FD, INVERSE = "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "inverse_mass_matrix"
TORQUES = "inverse_dynamics"
ID_HESSIAN, FD_HESSIAN = "inverse_dynamics_hessian", "forward_dynamics_hessian"
TABLES: dict[str, dict[str, Method]] = {  # the methods of each quantity, by name
    TORQUES: {}, ID: {}, FD: {}, INVERSE: {}, ID_HESSIAN: {}, FD_HESSIAN: {},
}  # fmt: skip


def register(method: Method) -> None:
    """Add a method to its quantity's table."""
    TABLES[method.quantity][method.name] = method


def methods(quantity: str | None = None) -> Methods:
    """All methods, or those of one quantity."""
    if quantity is not None and quantity not in TABLES:
        raise UnknownName("quantity with methods", quantity, TABLES)
    return Methods(m for name, of in TABLES.items() if quantity in (None, name) for m in of.values())


def find(quantity: str, name: str, mimic: bool = False) -> Method:
    """The method of that name; `mimic`: whether it must treat joints that mimic."""
    known = TABLES.get(quantity, {})
    if not isinstance(name, str) or name not in known:
        raise UnknownName(f"method of {quantity}", name, known, "featherjet.methods() describes each")
    method = known[name]
    if mimic and not method.mimic:
        able = ", ".join(m.name for m in known.values() if m.mimic)
        raise InputError(
            f"method {name!r} of {quantity} cannot treat mimicking joints: they are not free to move one by one, as "
            f"articulated bodies need. Take one of {able}, or load the robot with mimic=False"
        )
    return method


for _row in (
    Method("auto", TORQUES, "takes balafoutis-patel; newton-euler on NumPy", "O(n)", EXACT, rnea.inverse_dynamics),
    Method("newton-euler", TORQUES, "[RBDA] ch. 5, [RSS18] Alg. 1", "O(n)", EXACT, rnea.inverse_dynamics),
    Method("balafoutis-patel", TORQUES, "[BP]", "O(n)", EXACT, tensors.inverse_dynamics),
    Method("auto", ID, "takes idsva; idsva-body if shorter", "O(nd)", EXACT, idsva.inverse_dynamics_derivatives),
    Method("idsva", ID, "[IDSVA] Alg. 1", "O(nd)", EXACT, idsva.inverse_dynamics_derivatives),
    Method("idsva-body", ID, "[IDSVA] Alg. 1, Fig. 3", "O(nd)", EXACT, idsva_body.inverse_dynamics_derivatives),
    Method("chain-rule", ID, "[RSS18] Algs. 2-3", "O(nd)", EXACT, chain_rule.inverse_dynamics_derivatives),
    Method("pinocchio", ID, "[IDSVA] Secs. I, V-C", "O(nd)", EXACT, original.inverse_dynamics_derivatives),
    Method("balafoutis-patel", ID, "[BP]", "O(nd)", EXACT, balafoutis.inverse_dynamics_derivatives),
    Method("lagrangian", ID, "[RSS18] eq. 10", "O(n^3)", "O(n^3) memory", lagrangian.inverse_dynamics_derivatives),
    Method(
        "complex-step", ID, "[IDSVA] ref. [13]", "O(n^2)", EXACT,
        numeric.inverse(numeric.complex_step), traced=False,
    ),
    Method(
        "finite-difference", ID, "[RSS18] Sec. V", "O(n^2)", "about nine digits",
        numeric.inverse(numeric.central()), traced=False,
    ),
    Method(
        "finite-difference-forward", ID, "[RSS18] Sec. V", "O(n^2)", "about six digits",
        numeric.inverse(numeric.one_sided()), traced=False,
    ),
    Method("auto", FD, "takes direct; fdsva-factor if small; NumPy: fdsva", "O(n^2)", EXACT, fdsva.auto, traced=False),
    Method("direct", FD, "docs/direct.md", "O(n^2)", NO_MIMIC, direct.forward_dynamics_derivatives, mimic=False),
    Method(
        "fdsva", FD, "[IDSVA] Secs. IV-E, V-D", "O(n^2)", NO_MIMIC, fdsva.by_size,
        mimic=False, sized=("fdsva-dmm", "fdsva-aza"),
    ),
    Method("fdsva-dmm", FD, "[IDSVA] eq. 5", "O(n^3)", NO_MIMIC, fdsva.dmm, mimic=False),
    Method("fdsva-aza", FD, "[IDSVA] eq. 34", "O(n^2)", NO_MIMIC, fdsva.aza, mimic=False),
    Method(
        "fdsva-factor", FD, "[IDSVA] eq. 5, [RBDA] 6.5", "O(n^2 d)", NO_MIMIC, one_factor.forward_dynamics_derivatives,
        mimic=False,
    ),
    Method("fdsva-ltl", FD, "[IDSVA] eq. 5, [RBDA] 6.5", "O(n^2 d)", EXACT, fdsva.by_ltl),
    Method("fdcr", FD, "[RSS18] eq. 24", "O(n^3)", NO_MIMIC, fdsva.chain_rule_dmm, mimic=False),
    Method("abacr", FD, "[IDSVA] Table II", "O(n^2)", NO_MIMIC, abacr.forward_dynamics_derivatives, mimic=False),
    Method("pinocchio", FD, "[IDSVA] Table II", "O(n^3)", NO_MIMIC, fdsva.pinocchio_dmm, mimic=False),
    Method(
        "complex-step", FD, "[IDSVA] ref. [13]", "O(n^2)", EXACT,
        numeric.forward(numeric.complex_step), traced=False,
    ),
    Method(
        "finite-difference", FD, "[RSS18] Sec. V", "O(n^2)", "about eight digits",
        numeric.forward(numeric.central()), traced=False,
    ),
    Method(
        "finite-difference-forward", FD, "[RSS18] Sec. V", "O(n^2)", "about five digits",
        numeric.forward(numeric.one_sided()), traced=False,
    ),
    Method("auto", INVERSE, "takes direct; ltl if joints mimic", "O(n^2)", EXACT, factored.auto, traced=False),
    Method("direct", INVERSE, "[RSS18] Sec. IV-C", "O(n^2)", NO_MIMIC, minv.inverse_mass_matrix, mimic=False),
    Method("ltl", INVERSE, "[RBDA] 6.5", "O(n^2 d)", EXACT, factored.by_ltl),
    Method("dense", INVERSE, "[RSS18] eq. 26", "O(n^3)", EXACT, factored.dense),
    Method("auto", ID_HESSIAN, "takes analytic", "O(nd)", EXACT, hessian.inverse_dynamics_hessian),
    Method("analytic", ID_HESSIAN, "docs/second-order.md", "O(nd)", EXACT, hessian.inverse_dynamics_hessian),
    Method(
        "complex-step", ID_HESSIAN, "of gradients", "O(n^2)", EXACT,
        gradients.inverse(numeric.complex_step), traced=False,
    ),
    Method(
        "finite-difference", ID_HESSIAN, "of gradients", "O(n^2)", "about nine digits",
        gradients.inverse(numeric.central()), traced=False,
    ),
    Method(
        "auto", FD_HESSIAN, "takes analytic; chain-rule on NumPy", "O(n^2)", EXACT, hessian_alone(forward_hessian.auto),
        traced=False,
    ),
    Method(
        "analytic", FD_HESSIAN, "docs/second-order.md", "O(n^2)", NO_MIMIC, forward_hessian.forward_dynamics_hessian,
        mimic=False,
    ),
    Method(
        "chain-rule", FD_HESSIAN, "docs/second-order.md", "O(n^3)", EXACT, hessian_alone(forward_hessian.auto),
    ),
    Method(
        "complex-step", FD_HESSIAN, "of gradients", "O(n^2)", EXACT,
        gradients.forward(numeric.complex_step), traced=False,
    ),
    Method(
        "finite-difference", FD_HESSIAN, "of gradients", "O(n^2)", "about eight digits",
        gradients.forward(numeric.central()), traced=False,
    ),
):  # fmt: skip
    register(_row)
