"""First use: how long the first call of a quantity takes in a new process, with an empty cache and with a full one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ...algorithms.quantities import FRAME, QUANTITIES, shape, sizes
from ...errors import InputError
from ...evaluate import frames
from ...robot.robot import Robot

MEASURED = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives", "center_of_mass", "torque_regressor",
)  # fmt: skip
BATCH = 64
LIMITS = {"inverse_dynamics": 0.4, "forward_dynamics": 0.4}  # seconds; 1 for the rest
LIMIT, WARM_LIMIT = 1.0, 0.05

DYNAMICS = (
    "inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
)  # fmt: skip

CHILD = """
import json, logging, sys, time, warnings
start = time.perf_counter()
import numpy as np
numpy = time.perf_counter()
import featherjet as fj
imported = time.perf_counter()
warnings.simplefilter("ignore")
name, root, quantities, size = json.loads(sys.argv[1])
robot = fj.load(name, root)
from featherjet.lab.bench.first_use import call
said = []
logging.getLogger("featherjet").addHandler(handler := logging.Handler(logging.WARNING))
handler.emit = said.append
found = []
for quantity in quantities:
    run = call(robot, quantity, (size,) if size else ())
    said.clear()
    begin, used = time.perf_counter(), time.process_time()
    try:
        run()
    except fj.errors.FeatherjetError:
        pass  # a robot without mass, say: its code is compiled before it is refused
    found.append([time.perf_counter() - begin, time.process_time() - used, imported - numpy, not said])
print(json.dumps(found))
"""


def call(robot: Robot, quantity: str, batch: tuple[int, ...]) -> Callable[[], object]:
    """A call of a quantity at a random configuration, all other inputs zero."""
    record = QUANTITIES[quantity]
    size = sizes(robot.evaluator.tree) | {"q": robot.nq}
    inputs = []
    for i in record.inputs:
        if i.expands == "q":
            inputs.append(robot.random_configuration(0, batch or None))
        elif i is FRAME:
            inputs.append(frames.numbers(robot.evaluator, robot.model.frames[-1].name)[0])
        else:
            inputs.append(np.zeros((*batch, *shape(i.axes, size))))
    if quantity == "inverse_dynamics_second_derivatives":  # which a robot computes as its size suggests
        return partial(robot.inverse_dynamics_second_derivatives, *inputs)
    options = {"viewpoint": "local"} if "viewpoint" in record.options else {}
    return partial(robot.evaluator.run, quantity, inputs, **options)


def without_contacts() -> list[str]:
    """The quantities that need no contacts."""
    return [k for k, x in QUANTITIES.items() if "contacts" not in x.options]


class CallTimes(NamedTuple):
    """Seconds of one first call, those of all processors together, and those of importing featherjet before it.

    compiled: whether the call ran compiled code, and no warning said that NumPy computes the quantity.
    """

    wall: float
    cpu: float
    importing: float
    compiled: bool = True


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
        return limit(self.quantity)


def limit(quantity: str) -> float:
    """The budget of a first call with an empty cache, in seconds."""
    return LIMITS.get(quantity, LIMIT)


def sweep(robot: str, root: str, quantities: Sequence[str], size: int = BATCH) -> dict[str, CallTimes]:
    """First calls of several quantities of a robot, in one process and without a cache."""
    return dict(zip(quantities, _run(robot, root, quantities, size, ""), strict=True))


def first_uses(robots: Sequence[tuple[str, str]], quantities: Sequence[str] = MEASURED) -> Iterator[FirstUse]:
    """First calls of quantities of robots (name, root), each in new processes."""
    for robot, root in robots:
        for quantity in quantities:
            found = []
            for size in (0, BATCH):
                with tempfile.TemporaryDirectory() as folder:
                    found += [_run(robot, root, [quantity], size, folder)[0] for _ in ("empty", "full")]
            yield FirstUse(robot, quantity, *found)


def _run(robot: str, root: str, quantities: Sequence[str], size: int, folder: str) -> list[CallTimes]:
    environment = {**os.environ, "FEATHERJET_CACHE_DIR": folder, "FEATHERJET_BACKEND": "compiled"}
    command = [sys.executable, "-c", CHILD, json.dumps([robot, root, list(quantities), size])]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(f"{', '.join(quantities)} of {robot} cannot be measured: {reason}")
    return [CallTimes(*times) for times in json.loads(done.stdout)]
