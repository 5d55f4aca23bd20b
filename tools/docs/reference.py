"""The API reference: what each public name is, takes, returns and raises, for the pages of docs/reference.

A line `::: Robot.mass_matrix` of such a page becomes the entry of that name; its example follows on the page, which is
one program that the tests run. Names of arguments mean the same everywhere, so docs/reference/arguments.md explains
each once. What a quantity returns, and whether it needs a regular mass matrix, its record knows.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import static

import featherjet as fj
from featherjet import errors, models, verify
from featherjet.algorithms.quantities import QUANTITIES, Axis, Quantity
from featherjet.geometry import rotations, se3

ROOT = Path(__file__).parent.parent.parent
ARGUMENTS = ROOT / "docs/reference/arguments.md"
ENTRY = re.compile(r"^::: (\S+)$", re.M)
MODULES = {"verify": verify, "models": models, "geometry.rotations": rotations, "geometry.se3": se3}
FRAMEWORKS = ("jax", "torch", "casadi", "crocoddyl")  # which need not be installed
CALLED = {x.called: x.name for x in QUANTITIES.values() if x.called}  # records whose method has another name
CALLED["gravity_derivatives"] = "static_torque_derivatives"
LENGTHS = {"q": "nq", "v": "nv", "dofs": "nv", "joints": "njoints", "parameters": "10 njoints"}
INSIDE = {  # public for other parts of the package, not for users
    "Clip": ("checked", "end_state", "velocities"),
    "Contacts": ("arrows", "remember", "surface"),
    "Ground": ("arrows", "core", "flat", "footing", "gaps", "nearest", "rows", "surface", "table"),
    "HeightField": ("nearest", "surface"),
    "JaxRobot": ("call",),
    "Model": ("has_mimic", "joint_limits", "modest", "parts", "q_starts", "same_robot", "v_starts"),
    "ModelBuilder": ("doubt",),
    "Plane": ("nearest", "surface"),
    "PointContact": ("placement", "rows"),
    "Servo": ("errors", "pull", "turn"),
    "SurfaceContact": ("placement", "rows"),
    "TimeStep": ("facts", "steps"),
    "TorchRobot": ("call",),
    "Trajectory": ("standard",),
    "Transition": ("caption", "contact_forces"),
}

CONTROL = {"MPC": ("step", "reset"), "Solution": ("plot", "trajectory", "view")}  # of fj.control, what users call
GIVEN = ("Horizon", "Log", "Progress", "Quadratic", "Receding", "Solution", "StageFunction", "Values")  # what users get


class Argument(NamedTuple):
    """A row of the table of arguments; `raises` names the errors that a wrong one causes."""

    name: str
    shape: str
    unit: str
    meaning: str
    raises: str


# What is public


@cache
def public() -> dict[str, Any]:
    """Every public function, class, method and property, by its name below `featherjet`."""
    found: dict[str, Any] = {}
    for name in fj.__all__:
        thing = getattr(fj, name)
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            found |= {name: thing} | {f"{name}.{k}": member for k, member in members(name, thing)}
        elif inspect.isfunction(thing):
            found[name] = thing
    for where, module in MODULES.items():
        own = getattr(module, "__all__", [k for k, x in vars(module).items() if of_module(x, module)])
        found |= {f"{where}.{k}": x for k in own if inspect.isfunction(x := getattr(module, k))}
    for name in fj.control.__all__:
        thing = getattr(fj.control, name)
        found[f"control.{name}"] = thing
        found |= {f"control.{name}.{k}": getattr(thing, k) for k in CONTROL.get(name, ())}
    for module in FRAMEWORKS:
        for name, thing in static.exported(module).items():
            found[f"{module}.{name}"] = thing
            if inspect.isclass(thing):
                found |= {f"{module}.{name}.{k}": member for k, member in members(name, thing)}
    raised = [x for x in vars(errors).values() if inspect.isclass(x) and issubclass(x, (fj.FeatherjetError, Warning))]
    return found | {f"errors.{x.__name__}": x for x in raised if x.__module__ == errors.__name__}


def of_module(thing: Any, module: Any) -> bool:
    named = getattr(thing, "__name__", "_")
    return inspect.isfunction(thing) and thing.__module__ == module.__name__ and not named.startswith("_")


def members(name: str, thing: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class itself defines, or those of Robot and its base classes."""
    groups = reversed(thing.__mro__[:-1]) if name == "Robot" else (thing,)
    for k, member in {k: x for group in groups for k, x in vars(group).items()}.items():
        plain = getattr(member, "__func__", member)
        wanted = inspect.isfunction(plain) or isinstance(member, property)
        if wanted and not k.startswith("_") and k not in INSIDE.get(name, ()):
            yield k, plain


# What is said of a name


@cache
def arguments() -> dict[str, Argument]:
    """The table of arguments. `Servo.target` or `simulate.method` is an argument of that call alone."""
    lines = [line for line in ARGUMENTS.read_text().splitlines() if line.startswith("| `")]
    rows = [Argument(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]
    return {row.name.strip("`"): row for row in rows}


def key_of(name: str, parameter: str) -> str | None:
    """Where the table explains an argument of a call."""
    *owners, last = name.split(".")
    within = [".".join([*owners[1:], last]), last, *owners[1:]]  # geometry.rotations.exp: rotations.exp, exp, rotations
    tried = (f"{name}.{parameter}", *(f"{x}.{parameter}" for x in within), parameter)
    return next((key for key in tried if key in arguments()), None)


def parameters(name: str) -> list[inspect.Parameter]:
    thing = public()[name]
    if name.startswith(("control.", "casadi.")) and name.split(".")[-1] in GIVEN:
        return []
    if isinstance(thing, property) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
        return []
    return [p for p in inspect.signature(thing).parameters.values() if p.name not in ("self", "cls")]


def record(name: str) -> Quantity | None:
    """The record of the quantity that a method computes."""
    owner, _, method = name.rpartition(".")
    return QUANTITIES.get(CALLED.get(method, method)) if owner == "Robot" else None


def returned(name: str) -> str:
    """What a call returns: results and shapes of its record, or its type and what its summary says."""
    found, thing = record(name), public()[name]
    if found is not None:
        return "; ".join(f"`{r.name}` {shape(r.axes)}" for r in found.results) + f": {found.summary}"
    if isinstance(thing, property):
        thing = thing.fget
    kind = inspect.signature(thing).return_annotation
    return "" if kind in (inspect.Signature.empty, None, "None") else f"`{kind}`"


def shape(axes: tuple[Axis, ...]) -> str:
    return "(" + ", ".join(["...", *(LENGTHS.get(str(a), str(a)) for a in axes)]) + ")"


def raised(name: str) -> dict[str, str]:
    """The errors of a call, and when it raises them."""
    causes: dict[str, list[str]] = {}
    for p in parameters(name):
        row = arguments().get(key_of(name, p.name) or "")
        for error in row.raises.split(", ") if row and row.raises else ():
            causes.setdefault(error.strip("`"), []).append(p.name)
    found = {error: f"{', '.join(f'`{p}`' for p in names)}: {WRONG[error]}" for error, names in causes.items()}
    quantity = record(name)
    if quantity is not None and "mass" in quantity.margins:
        found["SingularMassMatrix"] = "the robot can move without moving any inertia"
    if quantity is not None and "contacts" in quantity.margins:
        found["SingularContacts"] = "contacts contradict each other"
    return found


WRONG = {
    "InputError": "wrong shape, not numbers, not finite, or out of range",
    "UnknownName": "no such name; the error lists the valid ones",
    "ModelError": "does not describe a robot",
    "MissingFile": "there is no such file",
}


def summary(name: str) -> str:
    """The docstring of a name, as Markdown: indented lines are code."""
    return inspect.getdoc(public()[name]) or ""


# Pages


def expanded(markdown: str) -> str:
    """A page with its entries written out."""
    return ENTRY.sub(lambda match: entry(match[1]), markdown)


def entry(name: str) -> str:
    thing = public()[name]
    kind = "property" if isinstance(thing, property) else "class" if inspect.isclass(thing) else ""
    parts = [f"### `{name}` {f'<small>{kind}</small> ' if kind else ''}{{ #{name} }}", signature(name), told(name)]
    rows = [row(name, p) for p in parameters(name)]
    if rows:
        parts.append("\n".join(["| argument | shape | unit | meaning |", "|---|---|---|---|", *rows]))
    if not inspect.isclass(thing) and (back := returned(name)):
        parts.append(f"**Returns** {back}")
    if errors_of := raised(name):
        each = [f"[`{e}`](errors.md#errors.{e}) ({why})" for e, why in errors_of.items()]
        parts.append(f"**Raises** {'; '.join(each)}.")
    return "\n\n".join(part for part in parts if part)


def told(name: str) -> str:
    """A docstring in Markdown: its own line breaks are kept where lines are definitions or code."""
    lines = []
    for line in summary(name).splitlines():
        if re.match(r"^\w[\w, ]*(: |   )", line) and lines and lines[-1]:
            lines.append("")
        lines.append(line)
    return "\n".join(lines).replace("<", "&lt;")


def signature(name: str) -> str:
    thing = public()[name]
    if isinstance(thing, property) or not parameters(name):
        return ""
    given = ", ".join(written(p) for p in bars(name))
    call = f"{name if inspect.isclass(thing) else owner(name)}({given})"
    return f"```text\n{call}\n```"


def owner(name: str) -> str:
    first, _, rest = name.rpartition(".")
    return f"{first.lower() if first in fj.__all__ and first not in MODULES else first}.{rest}" if first else name


def bars(name: str) -> Iterator[inspect.Parameter | str]:
    """Parameters, with the star that begins those given by name alone."""
    starred = False
    for p in parameters(name):
        if p.kind is p.KEYWORD_ONLY and not starred:
            yield "*"
        starred |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        yield p


def written(p: inspect.Parameter | str) -> str:
    if isinstance(p, str):
        return p
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    return f"{stars}{p.name}" + ("" if p.default is p.empty or made(p.default) else f"={p.default!r}")


def made(default: object) -> bool:
    """Whether a default is an object without a readable form, as dataclasses have for fields made by functions."""
    return isinstance(default, type(dataclasses.MISSING)) or repr(default).startswith("<")


def row(name: str, p: inspect.Parameter) -> str:
    found = arguments().get(key_of(name, p.name) or "")
    if found is None:
        return f"| `{p.name}` | | | |"
    return f"| `{p.name}` | {found.shape} | {found.unit} | {found.meaning} |"
