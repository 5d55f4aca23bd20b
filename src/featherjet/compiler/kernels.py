"""Which algorithm makes which kernel, and what goes in and comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..algorithms import aba, coriolis, crba, direct, idsva, kinematics, minv, rnea
from .border import Operand
from .engine import target_machine
from .program import Key, Output, Program, Variant
from .pytree import split
from .rolled import Field, Numbers, RolledScan, Vector
from .rolled_code import emit_rolled


class Kernel(NamedTuple):
    """An algorithm's inputs, its results by core dimensions, and how to trace it."""

    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, ...], ...]
    trace: Callable[..., Sequence[Any]]
    forces: bool = False  # whether external forces may be given
    margins: bool = False  # whether the last thing traced are the margins of M, to be watched


def _fd(scan: Any, q, v, tau, fext=None):
    d, margins = direct.forward_dynamics_derivatives(scan, q, v, tau, fext)
    return (*d, margins)


NN = ("v", "v")
KERNELS: dict[str, Kernel] = {
    "inverse_dynamics": Kernel(
        ("q", "v", "a"), (("v",),), lambda s, q, v, a, f=None: [rnea.inverse_dynamics(s, q, v, a, f)], True
    ),
    "bias": Kernel(("q", "v"), (("v",),), lambda s, q, v: [rnea.inverse_dynamics(s, q, v, None)]),
    "gravity": Kernel(("q",), (("v",),), lambda s, q: [rnea.inverse_dynamics(s, q, None, None)]),
    "mass_matrix": Kernel(("q",), (NN,), lambda s, q: [crba.mass_matrix(s, q)]),
    "coriolis_matrix": Kernel(("q", "v"), (NN,), lambda s, q, v: [coriolis.coriolis_matrix(s, q, v)]),
    "forward_kinematics": Kernel(("q",), (("joints", "sixteen"),), lambda s, q: [kinematics.forward_kinematics(s, q)]),
    "joint_columns": Kernel(("q",), (("v", "six"),), lambda s, q: [kinematics.joint_columns(s, q)]),
    "inverse_mass_matrix": Kernel(("q",), (NN,), minv.inverse_mass_matrix, margins=True),
    "forward_dynamics": Kernel(("q", "v", "tau"), (("v",),), aba.forward_dynamics, True, True),
    "inverse_dynamics_derivatives": Kernel(("q", "v", "a"), (NN, NN, NN), idsva.inverse_dynamics_derivatives, True),
    "forward_dynamics_derivatives": Kernel(("q", "v", "tau"), (NN, NN, NN), _fd, True, True),
}


def operands(name: str, fext: bool) -> list[Operand]:
    kernel = KERNELS[name]
    cores = {"q": ("q",), "fext": ("joints", "six")}
    given = [Operand(x, cores.get(x, ("v",))) for x in (*kernel.inputs, *(("fext",) if fext else ()))]
    return [Operand("report", ()), *given] + [Operand(f"out{k}", core) for k, core in enumerate(kernel.outputs)]


def signature(name: str, fext: bool, sizes: dict[str, int]) -> str:
    """The gufunc's signature, with the robot's sizes written in."""
    sides: tuple[list[str], list[str]] = ([], [])
    for o in operands(name, fext):
        sides[o.name.startswith("out")].append("(" + ",".join(str(sizes[d]) for d in o.core) + ")")
    return ",".join(sides[0]) + "->" + ",".join(sides[1])


def trace(name: str, variants: Sequence[Variant], fext: bool) -> Program:
    kernel = KERNELS[name]
    scan = RolledScan(variants)
    inputs: list[Any] = list(kernel.inputs)
    if fext:
        inputs.append(scan.forces("fext"))
    results = list(kernel.trace(scan, *inputs))
    program = scan.program
    if kernel.margins:
        program.watched = _key(results.pop())
    program.outputs = [_output(r) for r in results]
    # operands come in the kernel's order, whatever order the algorithm asked for them
    program.inputs = [x for x in (*kernel.inputs, "fext") if x in program.inputs]
    return program


def _output(result: int | Vector | Numbers) -> Output:
    if isinstance(result, int):
        return Output("matrix", result)
    if isinstance(result, Vector):
        return Output("dofs", keys=(_key(result),))
    value = next(iter(result.field.values.values()))
    space: Any = "J" if result.kind == "joints" else "D"
    count = len(value if result.kind == "joints" else value[0])
    keys = tuple(Key(space, result.field.number, (str(k),)) for k in range(count))
    return Output(result.kind, keys=keys)  # type: ignore[arg-type]


def _key(vector: Vector) -> Key:
    field: Field = vector.field
    value = next(iter(field.values.values()))
    assert isinstance(value, list)
    return Key("D", field.number, split((0,))[0])


def module(name: str, variants: Sequence[Variant], fext: bool, lanes: int):
    return emit_rolled(trace(name, variants, fext), operands(name, fext), lanes, target_machine().triple)
