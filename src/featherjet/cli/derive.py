"""`featherjet derive`: compute all dynamics and derivatives for a file of states."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .. import arrays
from ..algorithms.quantities import FEXT, QUANTITIES
from ..atomic import refuse_own_input
from ..errors import InputError, ModelWarning, SingularMassMatrix, warn
from ..files.npz import Array, NpzWriter, read_npz
from ..model import configuration
from ..robot.robot import Robot
from ..terminal import progress
from .output import line
from .parsing import add_out, add_robot, command, load_robot

ENTRIES = 400_000  # of one derivative matrix, computed at a time: the bar moves, and memory stays small
EXAMPLES = """\
The states file holds N states of the robot; `featherjet info ROBOT` shows nq, nv and the number of joints:
  q     (N, nq)                         v     (N, nv)
  a     (N, nv)  for inverse dynamics   tau   (N, nv)  for forward dynamics; give one or both
  fext  (N, njoints, 6)  optional: force and moment on each joint's body, in that joint's frame

  >>> np.savez("states.npz", q=q, v=v, a=a)             from Python, or:
  $ featherjet sample ROBOT --out states.npz            random states

The output:
  always     mass_matrix, coriolis_matrix, gravity, bias, kinetic_energy, potential_energy,
             center_of_mass, centroidal_map, centroidal_momentum (if the robot has mass)
  with a     tau, dtau_dq, dtau_dv, dtau_da
  with tau   a, da_dq, da_dv, da_dtau
  --order 2  also second derivatives, (N, nv, nv, nv): tau_qq, tau_qv, tau_vv, tau_qa; a_qq, a_qv, a_vv, a_qtau.
             If the states have w (N, nv), those of w.tau and w.a, (N, nv, nv): same names, nv times smaller.
             All other second derivatives are zero.

examples:
  featherjet derive quadruped --states states.npz --out derivatives.npz
  featherjet derive arm --states states.npz --out derivatives.npz --order 2
  featherjet derive my_robot.urdf --root free --states states.npz --out derivatives.npz --overwrite

The output file appears only when it is complete. Ctrl-C leaves nothing behind."""

# What is computed wherever its inputs are given; named after the quantity, or after each of its results
NAMED = (
    "mass_matrix", "gravity", "potential_energy", "coriolis_matrix", "bias", "kinetic_energy", "center_of_mass",
    "centroidal_map", "centroidal_momentum",
)  # fmt: skip
BY_RESULT = (
    "inverse_dynamics", "inverse_dynamics_derivatives", "forward_dynamics", "forward_dynamics_derivatives",
)  # fmt: skip
# With --order 2: derivatives of what, by q, v and what else; contracted where weights are given, and all of them
SECOND = (
    ("tau", "a", "inverse_dynamics_hessian", "inverse_dynamics_second_derivatives"),
    ("a", "tau", "forward_dynamics_hessian", "forward_dynamics_second_derivatives"),
)


def add(commands: Any) -> None:
    sub = command(commands, "derive", run, "compute all dynamics and derivatives for a file of states", EXAMPLES)
    add_robot(sub)
    sub.add_argument("--states", required=True, metavar="FILE", help="the .npz file of states (see below)")
    sub.add_argument("--order", type=int, choices=(1, 2), default=1, help="2: second derivatives too (default: 1)")
    add_out(sub, "the .npz file to write")


def run(args: argparse.Namespace) -> int:
    source, target = Path(args.states), Path(args.out)
    refuse_own_input(target, source, Path(args.robot))
    with NpzWriter(target, args.overwrite) as out:
        robot = load_robot(args)
        states = read_states(robot, source, args.order)
        total = len(states["q"])
        size = max(1, min(1024, ENTRIES // robot.nv ** (3 if args.order == 2 and "w" not in states else 2)))
        with progress() as bar:
            task = bar.add_task(robot.name, total=total)
            for start in range(0, total, size):
                part = {name: x[start : start + size] for name, x in states.items()}
                try:
                    out.append(everything(robot, part, args.order))
                except SingularMassMatrix as error:
                    hint = "leave tau out of the states to get inverse dynamics only"
                    raise SingularMassMatrix(f"counting from state {start}: {error} Or {hint}.") from None
                bar.advance(task, len(part["q"]))
    line(f"{args.out}: {total} states of {robot.name}")
    return 0


def read_states(robot: Robot, path: Path, order: int = 1) -> dict[str, Array]:
    """The arrays of a states file, all checked before anything is computed."""
    given = read_npz(path)
    cores = {
        "q": (robot.nq,),
        "v": (robot.nv,),
        "a": (robot.nv,),
        "tau": (robot.nv,),
        "fext": (robot.njoints, 6),
    }
    if order == 2:
        cores["w"] = (robot.nv,)
    letters = {"q": "nq", "fext": "njoints, 6"}
    if missing := [name for name in ("q", "v") if name not in given]:
        raise InputError(f"{path}: has no array {missing[0]!r}; it has: {', '.join(given) or 'none'}")
    if "a" not in given and "tau" not in given:
        raise InputError(f"{path}: needs a (for inverse dynamics), tau (for forward dynamics), or both")
    if unused := [name for name in given if name not in cores]:
        message = f"{path}: not used: {', '.join(unused)}; the names that are used: {', '.join(cores)}"
        warn(ModelWarning(message))
    states = {name: given[name] for name in cores if name in given}
    total = len(states["q"]) if states["q"].ndim else 0
    for name, x in states.items():
        if x.shape != (total, *cores[name]):
            want, got = (", ".join(map(str, shape)) for shape in ((total, *cores[name]), x.shape))
            raise InputError(
                f"{path}: {name}: expected shape ({want}), that is (N, {letters.get(name, 'nv')}) "
                f"of {robot.name}; got ({got})"
            )
        states[name] = arrays.finite(f"{path}: {name}", x, cores[name], letters.get(name, "nv"))
    if total == 0:
        raise InputError(f"{path}: holds no states")
    states["q"] = configuration.unit_parts(robot.model, f"{path}: q", states["q"])
    return states


def everything(robot: Robot, state: dict[str, Array], order: int = 1) -> dict[str, Array]:
    """Everything that can be computed at these states, named like Robot's methods and results."""
    out: dict[str, Array] = {}
    for name in (*NAMED, *BY_RESULT):
        record = QUANTITIES[name]
        inputs = [i.name for i in record.inputs]
        if not {*inputs} <= {*state} or (record.needs_mass and robot.mass == 0):
            continue
        fext = state.get(FEXT.name) if record.forces else None
        found = robot.evaluator.run(name, [state[x] for x in inputs], fext)
        names = [name] if name in NAMED else [r.name for r in record.results]
        out |= dict(zip(names, found, strict=True))
    return out | second(robot, state) if order == 2 else out


def second(robot: Robot, state: dict[str, Array]) -> dict[str, Array]:
    """The second derivatives of tau and of a, or of w.tau and w.a, where their inputs are given."""
    out: dict[str, Array] = {}
    for of, by, contracted, whole in SECOND:
        if by in state:
            call, weights = (contracted, [state["w"]]) if "w" in state else (whole, [])
            found = getattr(robot, call)(state["q"], state["v"], state[by], *weights, state.get(FEXT.name))
            out |= {f"{of}_{block}": x for block, x in found._asdict().items()}
    return out
