"""Write src/featherjet/robot/quantity_methods.py: a method of Robot for each record of algorithms/quantities.py.

Robot itself defines the few that are more than one call of the evaluator; records that serve inside have none.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from textwrap import fill

from featherjet.algorithms.quantities import FRAME, QUANTITIES, Axis, Quantity

ROBOT = Path(__file__).parent.parent / "src/featherjet/robot"
PAGE = ROBOT / "quantity_methods.py"
LENGTHS = {"q": "nq", "v": "nv", "dofs": "nv", "joints": "njoints", "parameters": "10 njoints"}
HEAD = '''"""A method for each quantity of a robot; `python tools/quantity_methods.py` writes them from the records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

{imports}


class QuantityMethods:
    """The quantities of a robot, one call of its evaluator each.

    Inputs come first, then a frame or contacts, external forces and `out`; leading axes broadcast. Everything else is
    by keyword. A frame is a name, or (name, point): its origin moved to a point (3,) [m] in it.
    """

    __slots__ = ("__weakref__", "_run", "evaluator")
    evaluator: Evaluator
    _run: Callable[..., Any]
'''


def written_by_hand() -> set[str]:
    """The methods that Robot and its base classes define themselves."""
    found = set()
    for path in set(ROBOT.glob("*.py")) - {PAGE}:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name != "RobotJoint":
                found |= {x.name for x in node.body if isinstance(x, ast.FunctionDef)}
    return found


def shape(axes: tuple[Axis, ...]) -> str:
    return "(" + ", ".join(["...", *(LENGTHS.get(str(a), str(a)) for a in axes)]) + ")"


def docstring(record: Quantity) -> str:
    """The summary with the shapes of results, then the record's note."""
    shapes = [shape(r.axes) for r in record.results]
    if len(shapes) == 1:
        said = shapes[0]
    elif len(set(shapes)) == 1:
        said = f"each {shapes[0]}"
    else:
        said = ", ".join(f"{r.name} {s}" for r, s in zip(record.results, shapes, strict=True))
    first = fill(
        f'"""{record.summary[0].upper() + record.summary[1:] if sentence(record) else record.summary}; {said}.', 112
    )
    note = fill(" ".join(record.note.split()), 112)
    text = f'{first}\n\n{note}\n"""' if note else f'{first}"""' if "\n" not in first else f'{first}\n"""'
    return text.replace("\n", "\n        ").replace("\n        \n", "\n\n")


def sentence(record: Quantity) -> bool:
    """Whether the summary begins with a word and no symbol, and so with a capital letter."""
    word, *rest = record.summary.split()
    symbol = rest[:1] == ["="] or any(r.name.startswith(f"{word}_d") for r in record.results)
    return len(word) > 1 and word.isalpha() and word.islower() and not symbol


def method(record: Quantity) -> str:
    """The source of one method."""
    framed, held, seen = FRAME in record.inputs, "contacts" in record.options, "viewpoint" in record.options
    inputs = [i.name for i in record.inputs if i is not FRAME]
    takes = [f"{name}: ArrayLike" for name in inputs]
    takes += ["frame: FrameName"] * framed + ["contacts: Contacts"] * held
    takes += ["fext: ArrayLike | None = None"] * record.forces + ["out: Out = None"]
    takes += ["*"] * bool(seen or record.methods)
    takes += ['viewpoint: Viewpoint = "local"'] * seen + ['method: str = "auto"'] * bool(record.methods)
    given = f'"{record.name}", ({", ".join(inputs)}{"," * (len(inputs) == 1)})'
    forces = "fext" if record.forces else "None"
    if framed:
        calls = [f"frames.run(self.evaluator, {given}, frame, {'viewpoint' if seen else 'None'}, out)"]
    elif held:
        calls = [f"contact.run(self.evaluator, {given}, contacts, {forces}, out)"]
    else:
        calls = [f"self._run({given}, {forces}, out)"]
        calls += [f"self._run({given}, {forces}, out, method=method)"] * bool(record.methods)
    found = [f"{call}[0]" if len(record.results) == 1 else packed(record, call) for call in calls]
    lines = [f"if method == 'auto':\n            return {found[0]}"] * (len(found) > 1) + [f"return {found[-1]}"]
    body = "\n        ".join([docstring(record), *lines])
    return f"    def {record.called or record.name}(self, {', '.join(takes)}) -> {kind(record)}:\n        {body}\n"


def kind(record: Quantity) -> str:
    """The type of what a method returns."""
    if len(record.results) == 1:
        return "Array"
    return "tuple[Array, ...]" if record.returns is None else record.returns.__self__.__name__  # type: ignore[attr-defined]


def packed(record: Quantity, call: str) -> str:
    return call if record.returns is None else f"{kind(record)}._make({call})"


def imports(records: list[Quantity]) -> str:
    """What the methods need, the named tuples of their results among it."""
    found = defaultdict(set)
    for name, where in (
        ("Contacts", "contact"), ("Evaluator", "evaluate.evaluator"), ("FrameName", "evaluate.frames"),
        ("Viewpoint", "evaluate.frames"), ("Array", "model.model"), ("Out", "arrays"), ("frames", "evaluate"),
        ("dynamics as contact", "contact"),
    ):  # fmt: skip
        found[where].add(name)
    for record in records:
        if record.returns is not None:
            made = record.returns.__self__  # type: ignore[attr-defined]
            found[made.__module__.removeprefix("featherjet.")].add(made.__name__)
    return "\n".join(f"from ..{where} import {', '.join(sorted(names))}" for where, names in sorted(found.items()))


def text() -> str:
    """The module, formatted."""
    hand = written_by_hand()
    records = [
        x for x in QUANTITIES.values() if not x.inside and x.product is None and (x.called or x.name) not in hand
    ]
    source = "\n".join([HEAD.format(imports=imports(records)), *map(method, records)])
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        call = [sys.executable, "-m", "ruff", *command, f"--stdin-filename={PAGE}", "-"]
        source = subprocess.run(call, input=source, capture_output=True, text=True, check=True).stdout
    return source


if __name__ == "__main__":
    PAGE.write_text(text())
