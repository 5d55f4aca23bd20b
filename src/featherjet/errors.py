"""All errors and warnings for users. Each message says what is wrong, where, and what to do; errors carry the data."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class FeatherjetError(Exception):
    """Base class of all errors that featherjet raises on purpose."""


class InputError(FeatherjetError, ValueError):
    """An argument has the wrong shape, dtype or value."""


class ModelError(FeatherjetError, ValueError):
    """A model, or its file, is not a robot that featherjet can handle."""


class MissingFile(ModelError, FileNotFoundError):
    """A model file does not exist."""


class UnknownName(FeatherjetError, KeyError):
    """A joint, frame, robot or method does not exist; `choices` holds those that do."""

    def __init__(self, what: str, name: object, choices: Iterable[str], hint: str = "") -> None:
        self.what, self.name, self.choices = what, name, tuple(choices)
        lower = {choice.lower(): choice for choice in self.choices}
        close = get_close_matches(name.lower(), lower, n=3, cutoff=0.5) if isinstance(name, str) else []
        listed = [lower[x] for x in close] or list(self.choices[:8])
        lead = "did you mean" if close else "there are"
        more = "" if close or len(self.choices) <= 8 else f", ... ({len(self.choices)} in all)"
        said = f"; {lead}: {', '.join(listed)}{more}" if listed else ""
        super().__init__(f"unknown {what} {name!r}{said}{'. ' + hint if hint else ''}")

    def __str__(self) -> str:  # KeyError shows the repr of the message instead
        return str(self.args[0])


class SingularMassMatrix(FeatherjetError, ArithmeticError):
    """The robot has, at this state, a direction of motion without inertia, so forward dynamics is undefined."""


class SingularContacts(FeatherjetError, ArithmeticError):
    """The contact forces are undetermined at this state: contacts are redundant, or hold a point that cannot move."""


class SimulationError(FeatherjetError, ArithmeticError):
    """A simulated motion diverged; `trajectory` holds the motion before that."""

    def __init__(self, message: str, trajectory: object) -> None:
        self.trajectory = trajectory
        super().__init__(message)


class MissingExtra(FeatherjetError, ImportError):
    """A feature needs a package that is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(f"{feature} needs {package}: pip install 'featherjet[{extra}]'")


class PhysicsWarning(UserWarning):
    """The model is usable, but no physical robot has such inertias."""


class ModelWarning(UserWarning):
    """The model is usable, but something in its file is dubious or was left out."""


class SimulationWarning(UserWarning):
    """A simulation was interrupted, starts below the ground, or has inexact contact forces."""
