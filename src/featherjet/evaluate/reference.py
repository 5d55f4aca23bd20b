"""The plain backend: algorithms run as they are written, on NumPy arrays of samples; also on complex ones.

`Reference.run(name, inputs)` takes arrays with batch axes leading, in the model's coordinates, already checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..algorithms.derivatives import methods, regressor, statics
from ..algorithms.dynamics import aba, coupled, crba, rnea
from ..algorithms.dynamics.coriolis import coriolis_matrix
from ..algorithms.dynamics.projected import projected_newton_euler
from ..algorithms.frames import derivatives as frame_derivatives
from ..algorithms.frames import jacobians, kinematics
from ..algorithms.frames.centroidal import centroidal_derivatives
from ..algorithms.scan import Scan
from ..model.model import Model
from ..model.tree import Tree

Array = np.ndarray
Inputs = Mapping[str, "Array | None"]

# What follows the batch axes of each result: dofs are reduced to the independent ones where joints mimic.
CORE: dict[str, tuple[str, ...]] = {
    "inverse_dynamics": ("v",),
    "bias": ("v",),
    "gravity": ("v",),
    "mass_matrix": ("vv",),
    "coriolis_matrix": ("vv",),
    "inverse_dynamics_derivatives": ("vv", "vv", "vv"),
    "centroidal_map": ("6v",),
    "centroidal_momentum": ("...",),
    "center_of_mass": ("...",),
    "kinetic_energy": ("...",),
    "potential_energy": ("...",),
    "jacobian": ("6v",),
    "jacobian_derivative": ("6v",),
    "jacobian_drift": ("...",),
    "jacobian_hessian": ("6vv",),
    "projected_newton_euler": ("vv", "v", "v"),
    "static_torque": ("v",),
    "static_torque_derivatives": ("vv",),
    "inverse_dynamics_force_derivatives": ("v",),
    "torque_regressor": ("v",),
    "frame_velocity_derivatives": ("6v", "6v"),
    "frame_acceleration": ("...",),
    "frame_acceleration_derivatives": ("6v", "6v", "6v"),
    "centroidal_derivatives": ("6v", "6v", "6v", "6v"),
}


class Reference:
    """Runs every algorithm on one model."""

    longest = 100_000  # operations of what is worth compiling for one robot

    def __init__(self, model: Model) -> None:
        self.model, self.tree = model, Tree(model)

    def run(self, name: str, inputs: Inputs, **static: Any) -> tuple[Array, ...]:
        """The named quantity's arrays, batch axes leading."""
        given = {k: x for k, x in inputs.items() if x is not None}
        core = {"fext": 2}
        lanes = np.broadcast_shapes(*(x.shape[: -core.get(k, 1)] for k, x in given.items()))
        with np.errstate(divide="ignore", invalid="ignore"):  # a singular mass matrix is the caller's to report
            results = self.compute(name, given, lanes, np.result_type(*given.values()), **static)
        return tuple(leading(r, len(lanes)) for r in results)

    def compute(
        self, name: str, given: Mapping[str, Array], lanes: tuple[int, ...], dtype: Any, **static: Any
    ) -> Sequence[Array]:
        """The same with lanes trailing, on scalars of any kind."""
        return getattr(self, "_" + name)(Scan(self.tree, lanes, dtype), **self._enter(given, lanes), **static)

    def _enter(self, given: Mapping[str, Array], lanes: tuple[int, ...]) -> dict[str, Any]:
        """Coordinates to the front, all with the same lanes; those of mimicking joints filled in.

        (tau stays: it is the user's.)
        """
        out: dict[str, Any] = {}
        for name, x in given.items():
            if name == "fext":
                x = np.moveaxis(np.broadcast_to(x, (*lanes, *x.shape[-2:])), (-2, -1), (0, 1))
                out[name] = [tuple(f) for f in x]
                continue
            x = np.moveaxis(np.broadcast_to(x, (*lanes, x.shape[-1])), -1, 0)
            c = self.tree.coupling
            if c is not None and name != "tau":
                lane = (slice(None),) + (None,) * len(lanes)
                x = x[c.qi] * c.qs[lane] + c.q0[lane] if name == "q" else x[c.vi] * c.vs[lane]
            out[name] = x
        return out

    def _leave(self, name: str, *results: Array) -> tuple[Array, ...]:
        """Results in the model's coordinates."""
        if self.tree.coupling is None:
            return results
        G = self.tree.coupling.G
        reduce = {
            "v": lambda x: coupled.reduce_vector(G, x),
            "vv": lambda x: coupled.reduce_matrix(G, x),
            "6v": lambda x: np.einsum("ij...,ja->ia...", x, G),
            "6vv": lambda x: np.einsum("ijk...,ja,kb->iab...", x, G, G),
            "...": lambda x: x,
        }
        return tuple(reduce[c](r) for c, r in zip(CORE[name], results, strict=True))

    def _inverse_dynamics(self, scan: Scan, q, v, a, fext=None):
        return self._leave("inverse_dynamics", rnea.inverse_dynamics(scan, q, v, a, fext))

    def _bias(self, scan: Scan, q, v, fext=None):
        return self._leave("bias", rnea.inverse_dynamics(scan, q, v, None, fext))

    def _gravity(self, scan: Scan, q):
        return self._leave("gravity", rnea.inverse_dynamics(scan, q, None, None))

    def _mass_matrix(self, scan: Scan, q):
        return self._leave("mass_matrix", crba.mass_matrix(scan, q))

    def _coriolis_matrix(self, scan: Scan, q, v):
        return self._leave("coriolis_matrix", coriolis_matrix(scan, q, v))

    def _inverse_dynamics_derivatives(self, scan: Scan, q, v, a, fext=None, method="auto"):
        by = methods.find(methods.ID, method).function
        return self._leave("inverse_dynamics_derivatives", *by(scan, q, v, a, fext))

    def _forward_dynamics(self, scan: Scan, q, v, tau, fext=None):
        if self.tree.coupling is not None:
            return coupled.forward_dynamics(scan, self.tree.coupling.G, q, v, tau, fext)
        return aba.forward_dynamics(scan, q, v, tau, fext)

    def _inverse_mass_matrix(self, scan: Scan, q, method="auto"):
        return methods.find(methods.INVERSE, method).function(scan, q)

    def _forward_dynamics_derivatives(self, scan: Scan, q, v, tau, fext=None, method="auto"):
        d, margins = methods.find(methods.FD, method).function(scan, q, v, tau, fext)
        return (*d, margins)

    def _forward_kinematics(self, scan: Scan, q):
        rows = kinematics.forward_kinematics(scan, q)
        return (rows.reshape((len(rows), 4, 4, *scan.lanes)),)

    def _joint_columns(self, scan: Scan, q):
        return (kinematics.joint_columns(scan, q),)  # of the tree's dofs, also where joints mimic

    def _jacobian(self, scan: Scan, q, sight):
        return self._leave("jacobian", jacobians.jacobian(scan, q, sight))

    def _jacobian_derivative(self, scan: Scan, q, v, sight):
        return self._leave("jacobian_derivative", jacobians.jacobian_derivative(scan, q, v, sight))

    def _jacobian_drift(self, scan: Scan, q, v, sight):
        return self._leave("jacobian_drift", jacobians.jacobian_drift(scan, q, v, sight))

    def _jacobian_hessian(self, scan: Scan, q, sight):
        return self._leave("jacobian_hessian", jacobians.jacobian_hessian(scan, q, sight))

    def _projected_newton_euler(self, scan: Scan, q, v, fext=None):
        return self._leave("projected_newton_euler", *projected_newton_euler(scan, q, v, fext))

    def _static_torque(self, scan: Scan, q, fext=None):
        return self._leave("static_torque", statics.static_torque(scan, q, fext))

    def _static_torque_derivatives(self, scan: Scan, q, fext=None):
        return self._leave("static_torque_derivatives", statics.static_torque_derivatives(scan, q, fext))

    def _inverse_dynamics_force_derivatives(self, scan: Scan, q):
        return self._leave("inverse_dynamics_force_derivatives", regressor.force_derivatives(scan, q))

    def _torque_regressor(self, scan: Scan, q, v, a):
        return self._leave("torque_regressor", regressor.torque_regressor(scan, q, v, a))

    def _forward_dynamics_force_derivatives(self, scan: Scan, q):
        return regressor.forward_force_derivatives(scan, q)

    def _forward_dynamics_parameter_derivatives(self, scan: Scan, q, v, tau, fext=None):
        return regressor.forward_parameter_derivatives(scan, q, v, tau, fext)

    def _frame_velocity_derivatives(self, scan: Scan, q, v, sight):
        found = frame_derivatives.frame_velocity_derivatives(scan, q, v, sight)
        return self._leave("frame_velocity_derivatives", *found)

    def _frame_acceleration(self, scan: Scan, q, v, a, sight):
        return (frame_derivatives.frame_acceleration(scan, q, v, a, sight),)

    def _frame_acceleration_derivatives(self, scan: Scan, q, v, a, sight):
        found = frame_derivatives.frame_acceleration_derivatives(scan, q, v, a, sight)
        return self._leave("frame_acceleration_derivatives", *found)

    def _centroidal_derivatives(self, scan: Scan, q, v, a):
        return self._leave("centroidal_derivatives", *centroidal_derivatives(scan, q, v, a))

    def _centroidal_map(self, scan: Scan, q):
        return self._leave("centroidal_map", kinematics.centroidal_map(scan, q))

    def _centroidal_momentum(self, scan: Scan, q, v):
        return (kinematics.centroidal_momentum(scan, q, v),)

    def _center_of_mass(self, scan: Scan, q):
        return (kinematics.center_of_mass(scan, q),)

    def _kinetic_energy(self, scan: Scan, q, v):
        return (np.broadcast_to(kinematics.kinetic_energy(scan, q, v), scan.lanes),)

    def _potential_energy(self, scan: Scan, q):
        return (np.broadcast_to(kinematics.potential_energy(scan, q), scan.lanes),)


def leading(x: Array, lanes: int) -> Array:
    """Move the trailing lane axes to the front."""
    return np.moveaxis(x, range(x.ndim - lanes, x.ndim), range(lanes)) if lanes else np.asarray(x)
