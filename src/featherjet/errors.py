"""All errors and warnings for users. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

MOST_CHARACTERS = 1000  # of a message
SHOWN_PLACES = 3  # of those that one warning is about
HERE = str(Path(__file__).parent)
Class = TypeVar("Class", bound=type)


def escaped(text: str) -> str:
    """A text with its control characters escaped, all but line breaks."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def printable(text: str) -> str:
    """A text that may hold a file's words, made fit for a terminal: control characters escaped, and not too long."""
    shown = escaped(text[: 2 * MOST_CHARACTERS])
    if len(shown) <= MOST_CHARACTERS:
        return shown
    return f"{shown[: MOST_CHARACTERS // 2]} ... {shown[-MOST_CHARACTERS // 2 :]}"


class FeatherjetError(Exception):
    """Base class of all errors that featherjet raises."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(printable(x) if isinstance(x, str) else x for x in args))


class InputError(FeatherjetError, ValueError):
    """An argument has the wrong shape, dtype or value."""


class ModelError(FeatherjetError, ValueError):
    """A model or its file does not describe a robot that featherjet can handle."""


class MissingFile(ModelError, FileNotFoundError):
    """A model file does not exist."""


def _near(name: str, choices: Iterable[str]) -> list[str]:
    """Up to three choices that begin with a name, or else look like it."""
    return [x for x in choices if len(name) > 1 and x.startswith(name)][:3] or get_close_matches(
        name, choices, n=3, cutoff=0.5
    )


class UnknownName(FeatherjetError, KeyError):
    """No joint, frame, robot, method or the like has this name; `choices` holds the valid ones."""

    def __init__(self, what: str, name: object, choices: Iterable[str], hint: str = "") -> None:
        self.what, self.name, self.choices = what, name, tuple(dict.fromkeys(choices))
        lower = {choice.lower(): choice for choice in self.choices}
        close = _near(name.lower(), lower) if isinstance(name, str) else []
        listed = [lower[x] for x in close] or list(self.choices[:8])
        lead = "did you mean" if close else "choose from"
        more = "" if close or len(self.choices) <= 8 else f", ... ({len(self.choices)} in all)"
        advice = f"; {lead}: {', '.join(listed)}{more}" if listed else ""
        super().__init__(f"unknown {what} {name!r}{advice}{'. ' + hint if hint else ''}")

    def __str__(self) -> str:  # KeyError shows the repr of the message instead
        return str(self.args[0])


class FixedAttribute(FeatherjetError, AttributeError):
    """An attribute cannot be set: the object has none of that name, or has it for good."""

    def __init__(self, owner: str, name: str, known: Iterable[str], settable: Iterable[str] = ()) -> None:
        self.name, free = name, tuple(settable)
        if name in known:
            reason = f"its {name} is fixed; make another {owner}"
        else:
            close = get_close_matches(name, [x for x in known if not x.startswith("_")], n=1)
            reason = f"it has no attribute {name!r}" + (f"; did you mean: {close[0]}" if close else "")
        super().__init__(f"{owner}: {reason}" + (f". You can set {', '.join(free)}" if free else ""))


def sealed(cls: Class) -> Class:
    """Fix the attributes of a class's objects once they are made: setting one, or a mistyped name, is an error."""
    make: Callable[..., None] = cls.__init__

    @wraps(make)
    def __init__(self: Any, *given: Any, **settings: Any) -> None:
        make(self, *given, **settings)
        self.__dict__["_sealed"] = True

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if "_sealed" in self.__dict__:
            raise FixedAttribute(cls.__name__, name, self.__dict__)
        object.__setattr__(self, name, value)

    cls.__init__ = __init__
    cls.__setattr__ = __setattr__  # pyright: ignore[reportAttributeAccessIssue]
    return cls


class SingularMassMatrix(FeatherjetError, ArithmeticError):
    """The robot can move at this state without moving any inertia, so forward dynamics is undefined."""


class IndefiniteMassMatrix(SingularMassMatrix):
    """The robot's inertias are physically impossible: at this state some motion has negative kinetic energy."""


class NonFiniteResult(FeatherjetError, FloatingPointError):
    """A result is not finite, because inputs are too large; np.errstate(over="ignore") returns it all the same."""


class SingularContacts(FeatherjetError, ArithmeticError):
    """Contacts contradict each other, or hold a point that cannot move so; or they do in neighbouring states, and have
    derivatives only with damping. In a batch, they do at all samples; see `ContactWarning`.
    """


class SimulationError(FeatherjetError, ArithmeticError):
    """A simulation diverged; `trajectory` holds the motion up to that point."""

    def __init__(self, message: str, trajectory: object) -> None:
        self.trajectory = trajectory
        super().__init__(message)


class MissingExtra(FeatherjetError, ImportError):
    """A feature needs a package that is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(f"{feature} needs {package}: pip install 'featherjet[{extra}]'")


class FeatherjetWarning(UserWarning):
    """Base class of all warnings that featherjet gives; `places` has a text for each place it is about, if several."""

    places: tuple[str, ...] = ()

    def __init__(self, *args: object) -> None:
        super().__init__(*(escaped(x) if isinstance(x, str) else x for x in args))


class PhysicsWarning(FeatherjetWarning):
    """The model is usable, but its inertias are physically impossible."""


class ModelWarning(FeatherjetWarning):
    """The model is usable, but something in its file is dubious or was ignored."""


class ContactWarning(FeatherjetWarning):
    """Contacts have no forces, or no derivatives, at some samples of a batch (SingularContacts): these are NaN."""


class SimulationWarning(FeatherjetWarning):
    """A simulation was interrupted, starts below the ground, or has inexact contact forces."""


def warn(warning: Warning) -> None:
    """Give a warning that points at the user's line, the innermost one outside featherjet."""
    frame = inspect.currentframe()
    assert frame is not None, "CPython has frames"
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    known = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<string>")
    warnings.warn_explicit(
        warning, type(warning), frame.f_code.co_filename, frame.f_lineno, module=module, registry=known
    )


def warn_of_places(category: type[FeatherjetWarning], what: str, places: Sequence[str], source: str = "") -> None:
    """Give one warning of what is wrong at several places: their number, and the first SHOWN_PLACES.

    what: their plural, such as "impossible inertias". places: a sentence each, all starting with `source`, the file.
    """
    if not places:
        return
    if len(places) == 1:
        return warn(category(places[0]))
    shown = [place.removeprefix(source).removeprefix(":") for place in places[:SHOWN_PLACES]]
    shown = [place.strip() if place[:1] in ("", " ") or not source else f"line {place}" for place in shown]
    rest = len(places) - len(shown)
    found = f"{len(places)} {what}: {'; '.join(shown)}{f'; and {rest} more' if rest else ''}"
    warning = category(f"{source}: {found}" if source else found)
    warning.places = tuple(map(escaped, places))
    warn(warning)
