"""First use: how long the first call of a quantity takes in a new process, with an empty cache and with a full one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...errors import InputError

QUANTITIES = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives", "center_of_mass", "torque_regressor",
)  # fmt: skip
BATCH = 64
LIMITS = {"inverse_dynamics": 0.4, "forward_dynamics": 0.4}  # seconds; 1 for the rest
LIMIT, WARM_LIMIT = 1.0, 0.05

CHILD = """
import json, sys, time, warnings
start = time.perf_counter()
import numpy as np
numpy = time.perf_counter()
import featherjet as fj
imported = time.perf_counter()
warnings.simplefilter("ignore")
name, root, quantity, size = json.loads(sys.argv[1])
robot = fj.load(name, root)
from featherjet.algorithms.quantities import QUANTITIES
batch = (size,) if size else ()
q = robot.random_configuration(0, batch or None)
rest = [np.zeros((*batch, robot.nv)) for _ in QUANTITIES[quantity].inputs[1:]]
begin, used = time.perf_counter(), time.process_time()
robot.evaluator.run(quantity, [q, *rest])
print(json.dumps([time.perf_counter() - begin, time.process_time() - used, imported - numpy]))
"""


class CallTimes(NamedTuple):
    """Seconds of one first call, those of all processors together, and those of importing featherjet before it."""

    wall: float
    cpu: float
    importing: float


class FirstUse(NamedTuple):
    """The first call for one state and for a batch, with an empty cache and with a full one."""

    robot: str
    quantity: str
    one: CallTimes
    warm_one: CallTimes
    batch: CallTimes
    warm_batch: CallTimes

    @property
    def limit(self) -> float:
        return LIMITS.get(self.quantity, LIMIT)


def first_uses(robots: Sequence[tuple[str, str]], quantities: Sequence[str] = QUANTITIES) -> Iterator[FirstUse]:
    """Each in processes of its own; robots are (name, root)."""
    for robot, root in robots:
        for quantity in quantities:
            found = []
            for size in (0, BATCH):
                with tempfile.TemporaryDirectory() as folder:
                    found += [_run(robot, root, quantity, size, folder) for _ in ("empty", "full")]
            yield FirstUse(robot, quantity, *found)


def _run(robot: str, root: str, quantity: str, size: int, folder: str) -> CallTimes:
    environment = {**os.environ, "FEATHERJET_CACHE_DIR": folder, "FEATHERJET_BACKEND": "compiled"}
    command = [sys.executable, "-c", CHILD, json.dumps([robot, root, quantity, size])]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(f"{quantity} of {robot} cannot be measured: {reason}")
    return CallTimes(*json.loads(done.stdout))
