"""Kernels of a time step with ground contact; feet, ground and joints with stops are data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from ..algorithms.contacts import feet
from ..algorithms.contacts.scene import ContactSet
from ..algorithms.dynamics import balance
from ..jit.chain import Chain, Link
from ..jit.engine import CPU
from ..jit.kernel import Kernel
from ..jit.number import Number
from ..model.tree import Tree
from .held import Axes, ContactCompiler, ContactProgram
from .tables import Tables

V: tuple[str, ...] = ("v",)
FEET, HEIGHT, ROWS = ("grips", len(feet.FOOT)), ("grips",), ("rows",)
STOPS: Axes = {"stops": ("stops", 3), "held": ("stops", 2)}
REPORT = 4


class StepCompiler(ContactCompiler):
    """Makes the kernels of one tree's time steps: its feet are point contacts with the world; stops: dofs.

    balanced: whether free roots keep their momentum in flight.
    """

    def __init__(
        self,
        tree: Tree,
        tables: Callable[[Number], Tables],
        integrate: Kernel,
        cpu: CPU,
        contacts: ContactSet,
        stops: Sequence[int],
        balanced: bool,
    ) -> None:
        super().__init__(tree, tables, lambda _: integrate, cpu, contacts, stops)
        self.integrate, self.stops, self.floats = integrate, bool(stops), balanced

    def called(self, stage: str) -> str:
        return f"time steps: {stage}"

    @cached_property
    def approach(self) -> Kernel:
        """(q, v, feet) -> height of each foot above the ground, its rate."""
        inputs: Axes = {"q": ("q",), "v": V, "feet": FEET}
        return self.rolled(ContactProgram("approach", feet.approach, inputs, {"height": HEIGHT, "rate": HEIGHT}, False))

    @cached_property
    def centres(self) -> Kernel:
        """q -> the feet's centres, three numbers each."""
        return self.rolled(ContactProgram("centres", feet.centres, {"q": ("q",)}, {"centres": ROWS}, False))

    @cached_property
    def strike(self) -> Kernel:
        inputs: dict[str, Any] = {
            "q": ("q",), "v": V, "mid": V, "tau": V, "soft": V, "feet": FEET, "height": HEIGHT, "start": ROWS,
            "h": (1,),
        }  # fmt: skip
        results: dict[str, Any] = {"after": V, "P": ROWS, "move": V, "end": V, "solver_report": (REPORT,)}
        if self.stops:
            inputs, results = {**inputs, **STOPS}, {**results, "holding": ("stops", 2)}
        return self.rolled(ContactProgram("strike", feet.strike, inputs, results, True))

    @cached_property
    def balanced(self) -> Kernel:
        """Velocities that keep the momentum of floating robots in flight."""
        inputs: Axes = {
            "q": ("q",), "v": V, "end": ("q",), "after": V, "tau": V, "solver_report": (REPORT,), "h": (1,),
        }  # fmt: skip
        return self.rolled(ContactProgram("balanced", balance.balanced, inputs, {"balanced": V}, False))

    @cached_property
    def compression(self) -> Kernel:
        """(q, v, feet, height, start, h) -> velocities after an impact without restitution, P, solver_report."""
        return self._impact(feet.Compression)

    @cached_property
    def restitution(self) -> Kernel:
        """The same, with the normal percussions that `start` has."""
        return self._impact(feet.Restitution)

    def _impact(self, law: type[feet.Law]) -> Kernel:
        inputs: Axes = {"q": ("q",), "v": V, "feet": FEET, "height": HEIGHT, "start": ROWS, "h": (1,)}
        results: Axes = {"after": V, "P": ROWS, "solver_report": (REPORT,)}
        return self.rolled(ContactProgram(law.__name__, partial(feet.collide, law), inputs, results, True))

    @cached_property
    def begin(self) -> Kernel:
        """(q, v, feet, away, h) -> heights of feet, v in the axes of the middle of a step, and the way there."""
        inputs: Axes = {"q": ("q",), "v": V, "feet": FEET, "away": HEIGHT, "h": (1,)}
        return self.rolled(ContactProgram("begin", feet.begin, inputs, {"height": HEIGHT, "u": V, "way": V}, False))

    @cached_property
    def halfway(self) -> Kernel:
        """(v, guess, move) -> v in the axes of the middle of a step, the velocity there, and the way there."""
        inputs: Axes = {"v": V, "guess": V, "move": V}
        return self.rolled(ContactProgram("halfway", feet.halfway, inputs, {"u": V, "mid": V, "way": V}, False))

    @cached_property
    def step(self) -> Kernel:
        """One step of TimeStepping; see `feet.strike`.

        (q, v, tau, soft, feet, away, start, h, [stops, held]) -> (q, v, P, report, [holding]); away: what to add to the
        feet's heights.
        """
        inputs: dict[str, Any] = {
            "q": ("q",), "v": V, "tau": V, "soft": V, "feet": FEET, "away": HEIGHT, "start": ROWS, "h": (1,),
        }  # fmt: skip
        results: dict[str, Any] = {"q+": ("q",), "v+": V, "P": ROWS, "solver_report": (REPORT,)}
        between: dict[str, Any] = {
            "height": HEIGHT, "u": V, "way": V, "mid": V, "half": ("q",), "first": V, "P1": ROWS, "move": V,
            "second": V, "end": V,
        }  # fmt: skip
        given: tuple[str, ...] = ()
        if self.stops:
            inputs, results = {**inputs, **STOPS}, {**results, "holding": ("stops", 2)}
            between, given = {**between, "held1": ("stops", 2)}, ("stops",)

        def attempt(mid: str, start: str, held: str, after: str, end: str, P: str, holding: str) -> list[Link]:
            known = ("half", "u", mid, "tau", "soft", "feet", "height", start, "h", *given, *((held,) if given else ()))
            found = (after, P, "move", end, "solver_report", *((holding,) if given else ()))
            return [Link(self.integrate, ("q", "way", "half")), Link(self.strike, (*known, *found))]

        links = [
            Link(self.begin, ("q", "v", "feet", "away", "h", "height", "u", "way")),
            *attempt("u", "start", "held", "first", "end", "P1", "held1"),
            Link(self.halfway, ("v", "first", "move", "u", "mid", "way")),
            *attempt("mid", "P1", "held1", "second", "end" if self.floats else "v+", "P", "holding"),
            Link(self.integrate, ("q", "move", "q+")),
        ]
        if self.floats:
            links.append(Link(self.balanced, ("q", "v", "q+", "end", "tau", "solver_report", "h", "v+")))
        return Chain("time steps", self.cpu, inputs, results, between, links, self.sizes)
