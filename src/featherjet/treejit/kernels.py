"""Which algorithm makes which kernel, and what goes in and comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..algorithms.derivatives import direct, fdsva, idsva
from ..algorithms.dynamics import aba, coriolis, coupled, crba, minv, rnea
from ..algorithms.frames import kinematics
from ..model.tree import Tree
from .program import Operand
from .tables import sizes

Shape = tuple[int, ...]


class Kernel(NamedTuple):
    """An algorithm's inputs, its results by core dimensions, how to trace it, and what it costs."""

    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, ...], ...]
    trace: Callable[..., Sequence[Any]]
    effort: tuple[float, float, float]  # operations for each dof, each pair of dofs on a path, each pair of dofs
    forces: bool = False  # whether external forces may be given
    margins: bool = False  # whether the last thing traced are the margins of M, to be watched
    coupled: Callable[..., Sequence[Any]] | None = None  # where joints mimic; else G reduces results
    others: tuple[Callable[..., Sequence[Any]], ...] = ()  # of small robots, the one of fewest operations is taken
    rolled: bool = True  # whether it is made of walks alone, and can be compiled for all robots at once

    @property
    def matrices(self) -> bool:
        return any(core == NN for core in self.outputs)


def _derivatives(algorithm: Callable) -> Callable:
    """(derivatives, margins) as one sequence."""

    def flat(*inputs):
        d, margins = algorithm(*inputs)
        return (*d, margins)

    return flat


NN = ("v", "v")
KERNELS: dict[str, Kernel] = {
    "inverse_dynamics": Kernel(
        ("q", "v", "a"), (("v",),), lambda s, *x: [rnea.inverse_dynamics(s, *x)], (300, 0, 0), forces=True
    ),
    "bias": Kernel(("q", "v"), (("v",),), lambda s, q, v: [rnea.inverse_dynamics(s, q, v, None)], (280, 0, 0)),
    "gravity": Kernel(("q",), (("v",),), lambda s, q: [rnea.inverse_dynamics(s, q, None, None)], (55, 0, 0)),
    "mass_matrix": Kernel(("q",), (NN,), lambda s, q: [crba.mass_matrix(s, q)], (100, 10, 0)),
    "coriolis_matrix": Kernel(("q", "v"), (NN,), lambda s, q, v: [coriolis.coriolis_matrix(s, q, v)], (220, 25, 0)),
    "inverse_mass_matrix": Kernel(
        ("q",), (NN,), minv.inverse_mass_matrix, (250, 0, 20), margins=True, coupled=coupled.inverse_mass_matrix
    ),
    "forward_dynamics": Kernel(
        ("q", "v", "tau"), (("v",),), aba.forward_dynamics, (450, 0, 0), True, True, coupled.forward_dynamics
    ),
    "inverse_dynamics_derivatives": Kernel(
        ("q", "v", "a"), (NN, NN, NN), idsva.inverse_dynamics_derivatives, (350, 50, 0), forces=True
    ),
    "forward_dynamics_derivatives": Kernel(
        ("q", "v", "tau"), (NN, NN, NN), _derivatives(direct.forward_dynamics_derivatives), (500, 0, 65), True, True,
        _derivatives(fdsva.reduced),
        (_derivatives(fdsva.dmm), _derivatives(fdsva.aza), _derivatives(fdsva.by_ltl)),
    ),
    "forward_kinematics": Kernel(
        ("q",), (("joints", "sixteen"),), lambda s, q: [kinematics.forward_kinematics(s, q)], (40, 0, 0)
    ),
    "joint_columns": Kernel(("q",), (("dofs", "six"),), lambda s, q: [kinematics.joint_columns(s, q)], (40, 0, 0)),
    "kinetic_energy": Kernel(
        ("q", "v"), ((),), lambda s, q, v: [kinematics.kinetic_energy(s, q, v)], (150, 0, 0), rolled=False
    ),
    "potential_energy": Kernel(
        ("q",), ((),), lambda s, q: [kinematics.potential_energy(s, q)], (40, 0, 0), rolled=False
    ),
    "center_of_mass": Kernel(
        ("q",), (("three",),), lambda s, q: [kinematics.center_of_mass(s, q)], (40, 0, 0), rolled=False
    ),
    "centroidal_map": Kernel(
        ("q",), (("six", "v"),), lambda s, q: [kinematics.centroidal_map(s, q)], (120, 0, 0), rolled=False
    ),
    "centroidal_momentum": Kernel(
        ("q", "v"), (("six",),), lambda s, q, v: [kinematics.centroidal_momentum(s, q, v)], (150, 0, 0), rolled=False
    ),
}  # fmt: skip
COMPARED = 12_000  # operations up to which it takes no time to try several algorithms
UNROLLED = {
    True: 32_000,
    False: 8_000,
}  # operations of a kernel (with, without matrices) for one robot


def unrolls(name: str, tree: Tree) -> bool:
    """Whether to compile for this robot alone: where that is quick, and brings something.

    Rolled, matrices have their columns in lanes, which leaves lanes idle; unrolled, all lanes are samples. Where lanes
    are samples in both, it is only the constants that fold.
    """
    kernel = KERNELS[name]
    if tree.coupling is not None or not kernel.rolled:
        return True
    return effort(kernel, tree) <= UNROLLED[kernel.matrices]


def effort(kernel: Kernel, tree: Tree) -> float:
    """Roughly how many operations a kernel takes for one robot."""
    paths = sum((n.v.stop - n.v.start) * (tree.subtree(n).stop - n.v.start) for n in tree.nodes)
    dofs, pairs, all_pairs = kernel.effort
    return dofs * tree.nv + pairs * paths + all_pairs * tree.nv**2


def operands(name: str, fext: bool) -> list[Operand]:
    kernel = KERNELS[name]
    cores = {"q": ("q",), "fext": ("joints", "six")}
    given = [Operand(x, cores.get(x, ("v",))) for x in (*kernel.inputs, *(("fext",) if fext else ()))]
    return [Operand("report", ()), *given] + [Operand(f"out{k}", core) for k, core in enumerate(kernel.outputs)]


def shapes(name: str, fext: bool, tree: Tree) -> tuple[dict[str, Shape], list[Shape]]:
    """The core shapes of a kernel's inputs, by name, and of its results."""
    known = sizes(tree)
    found = {o.name: tuple(known[str(d)] for d in o.core) for o in operands(name, fext)[1:]}
    inputs = {k: shape for k, shape in found.items() if not k.startswith("out")}
    return inputs, [shape for k, shape in found.items() if k.startswith("out")]
