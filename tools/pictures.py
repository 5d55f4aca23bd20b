"""Draw the pictures of the examples in docs/figures/examples, named without their numbers.

    python tools/pictures.py            # those that are missing
    python tools/pictures.py lqr ilqr   # these

Each example runs as users run it. What it computed is drawn by the function of its name below; an example without one
shows what it prints.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs/figures/examples"
Names = dict[str, Any]
WIDTH = 8.0  # of pictures [inches]
BLUE = "#4a78ab"  # of the robots' limbs


def derivatives(x: Names) -> None:
    matrices({f"dtau_d{k}": getattr(x["by"], f"dtau_d{k}") for k in "qva"})


def batch(x: Names) -> None:
    matrices({"mean size of dtau_dq over 200 states": np.abs(x["d"].dtau_dq).mean(0)})


def floating_base(x: Names) -> None:
    difference = (x["ahead"] - x["behind"]) / (2 * x["h"])
    curve(
        ["central difference", "column of dtau_dq"], np.stack([difference, x["column"]], -1), "dof", "N m", marker="o"
    )


def newton_swing_up(x: Names) -> None:
    plt.bar(["Newton", "Gauss-Newton"], [x["newton"][0], x["gauss_newton"][0]], color=[BLUE, "0.6"])
    plt.ylabel("iterations")


def quadruped_drop(x: Names) -> None:
    motion = x["motion"]
    film(motion, 0.0, 0.3, 0.6, 1.0, below=1)
    curve(motion.contacts, motion.forces[:, 2::3], "time [s]", "vertical force [N]", motion.t)


def hopping_leg(x: Names) -> None:
    film(x["motion"], 0.0, 0.2, 0.42, 0.65, 0.9, below=1)
    curve(["body"], x["height"][:, None], "time [s]", "height [m]", x["motion"].t)


def four_bar(x: Names) -> None:
    film(x["motion"], 0.0, 0.2, 0.4, 0.6, 0.8, below=1, look=((0.2, -0.3, 1.4), (0.2, 0.0, 0.0)))
    curve(["crank", "coupler", "rocker"], x["motion"].q, "time [s]", "angle [rad]", x["motion"].t)


def force_estimation(x: Names) -> None:
    noise = np.stack([x["predicted"], x["sampled"]], -1)
    curve(["predicted", "sampled"], noise, "force component", "standard deviation [N]", marker="o")


def co_design(x: Names) -> None:
    thigh = np.linspace(0.6, 1.9, 40)
    plt.plot(thigh, [x["effort"](np.array([l, 2 - l]))[0] for l in thigh])
    plt.plot(*[x["best"][0], x["effort"](x["best"])[0]], "o")
    plt.xlabel("thigh [m] of a leg of 2 m")
    plt.ylabel("mean tau² [N² m²]")


def thousand_drops(x: Names) -> None:
    film(x["motion"], 1.0, below=1, look=((20.5, -20.5, 3.0), (9.0, -9.0, -0.5)))
    plt.hist(x["peak"], 60, color=BLUE)
    plt.xlabel("hardest landing force / weight")
    plt.ylabel("worlds")


def swing_up(x: Names) -> None:
    t, weak = x["t"], x["weak"]
    film(weak, 0.0, 0.25, 0.5, 0.75, 1.0, below=1)
    t = np.linspace(0, weak.duration, 300)
    curve(["shoulder", "elbow"], weak.tau(t), "time [s]", "torque of weak motors [N m]", t)


def arm_with_load(x: Names) -> None:
    motion = x["careful"]
    film(motion, 0.0, 0.3, 0.6, 1.0, below=1)
    t = motion.times()
    curve([f"joint {k + 1}" for k in range(7)], motion.tau(t), "time [s]", "torque [N m]", t)


def stand_to_crouch(x: Names) -> None:
    film(x["result"], 0.0, 0.35, 0.65, 1.0, below=1)
    curve(["feet", "weight"], np.stack([x["upward"], 0 * x["t"] + x["weight"]], -1), "time [s]", "force [N]", x["t"])


def clip_to_clip(x: Names) -> None:
    q, dt = np.asarray(x["whole"].q), x["whole"].dt
    film(x["robot"], q, 0.05, 0.35, 0.5, 0.65, 0.95, below=1, dt=dt)
    curve([""], q[:, 7:], "time [s]", "joint angles [rad]", dt * np.arange(len(q)))


def inverse_kinematics(x: Names) -> None:
    film(x["robot"], x["q"][:60:15], below=1, spacing=0.0)
    curve(["goals reached"], 100 * np.array(x["reached"])[:, None], "iterations", "%")


def lqr(x: Names) -> None:
    t = x["h"] * np.arange(len(x["states"]))
    film(x["robot"], x["states"][:, :3], 0.0, 0.05, 0.1, 0.2, 1.0, below=1, dt=x["h"])
    curve(["cart [m]", "lower [rad]", "upper [rad]"], x["states"][:, :3], "time [s]", "", t)


def ilqr(x: Names) -> None:
    film(x["robot"], x["xs"][:, : x["n"]], 0.0, 0.35, 0.65, 1.0, below=2, dt=x["h"], traces=["tool"])
    left, right = plt.gcf().axes[-2:]
    left.semilogy(x["costs"], "o-", color=BLUE)
    left.set(xlabel="iteration", ylabel="cost")
    right.plot(x["h"] * np.arange(x["T"] + 1), 1e2 * np.linalg.norm(x["path"] - x["goal"], axis=-1), color=BLUE)
    right.set(xlabel="time [s]", ylabel="tool to goal [cm]")


def verify_your_robot(x: Names) -> None:
    film(x["robot"], x["robot"].integrate(x["robot"].neutral(), np.full(x["robot"].nv, 0.3)), columns=2)
    sizes = np.abs(x["dM"]).max(-1) if x["dM"].ndim == 3 else np.abs(x["dM"])
    beside(sizes, "largest slope of each entry of M")


def reach(x: Names) -> None:
    film(x["free"], 0.0, 0.3, 1.0)


def exact_swing_up(x: Names) -> None:
    film(solution(x), 0.0, 0.35, 0.6, 1.0)


def thousand_reaches(x: Names) -> None:
    plt.hist(1000 * x["missed"], 60, color=BLUE)
    plt.xlabel("tool to goal at the end [mm]")
    plt.ylabel("problems")


def rotations(x: Names) -> None:
    t = np.linspace(0, 0.76, 300)
    rot, names = x["rot"], ("yaw", "pitch", "roll")
    turned = [rot.convert(rot.integrate(x["start"], x["omega"], s, "B"), "quaternion", "euler_zyx") for s in t]
    rates = [np.abs(rot.euler_zyx_rate(zyx, x["omega"], "B")) for zyx in turned]
    curve(names, np.array(rates), "time [s]", "size of the Euler rates [rad/s]", t)
    plt.yscale("log")


def gradient_of_a_throw(x: Names) -> None:
    path, target = x["path"], x["target"]
    plt.plot(path[:, 0], path[:, 2], label="the last throw")
    plt.plot(target[0], target[2], "*", markersize=12, label="target")
    plt.axhline(path[:, 2].min(), color="0.7")
    plt.xlabel("ahead [m]")
    plt.ylabel("height of the ball [m]")
    plt.legend(fontsize=8)


def servo_on_stairs(x: Names) -> None:
    film(x["motion"], 0.0, 0.3, 0.6, 1.0, spacing=0.8)


def trot(x: Names) -> None:
    film(solution(x), 0.0, 0.25, 0.5, 0.75)


def jump(x: Names) -> None:
    film(solution(x), 0.0, 0.5, 1.0)


def humanoid_step(x: Names) -> None:
    film(solution(x), 0.0, 0.5, 1.0)


def solution(x: Names) -> Any:
    """What an example of optimal control has found."""
    from featherjet.control import Solution

    return x["solution"] if "solution" in x else next(s for s in x.values() if isinstance(s, Solution))


def parameter_identification(x: Names) -> None:
    plt.bar(list(x["errors"]), list(x["errors"].values()), color=["0.6", "#efb118", BLUE])
    plt.ylabel("error of torques at new states [N m]")


DRAWN: tuple[Callable[[Names], None], ...] = (
    derivatives, batch, floating_base, newton_swing_up, quadruped_drop, hopping_leg, four_bar, force_estimation,
    co_design, thousand_drops, swing_up, arm_with_load, stand_to_crouch, clip_to_clip, inverse_kinematics, lqr, ilqr,
    parameter_identification, verify_your_robot, reach, exact_swing_up, thousand_reaches, rotations,
    gradient_of_a_throw, servo_on_stairs, trot, jump, humanoid_step,
)  # fmt: skip


def film(
    thing: Any,
    *shares: Any,
    below: int = 0,
    columns: int = 0,
    dt: float | None = None,
    look: tuple[Any, Any] | None = None,
    **options: Any,
) -> None:
    """A motion at shares of its duration, or a robot at configurations, as the viewer shows it.

    dt: for a robot, the time between configurations, which are the first of `shares`.
    below: how many axes follow below the pictures; columns: how many stand side by side, at least.
    """
    still = hasattr(thing, "inverse_dynamics")
    given, shares = (shares[:1], shares[1:]) if still else ((), shares)
    moving = {"dt": dt} if dt else {}
    viewer = thing.view(*given, play=False, port=18200, **moving, **options)
    count = max(len(shares), columns, 1)
    size = (max(1200 // count, 400), 400) if count > 1 else (1200, 480)
    try:
        if look:
            viewer.look(*look)
        with viewer._camera(size):  # one browser for all
            times = [share * viewer.duration for share in shares] or [0.0]
            pictures = [viewer.screenshot(t=t, size=size) for t in times]
    finally:
        viewer.stop()
    figure, height = plt.gcf(), WIDTH / count * size[1] / size[0]
    figure.set_size_inches(WIDTH, height + 0.3 + 2.4 * bool(below))
    parts = np.ravel(figure.subfigures(2, 1, height_ratios=[height + 0.3, 2.4])) if below else [figure]
    for axes, t, picture in zip(np.ravel(parts[0].subplots(1, count)), times, pictures, strict=False):
        axes.imshow(picture)
        axes.set(title=f"{t:.2f} s" if shares else "", xticks=[], yticks=[])
        axes.title.set_fontsize(9)
        axes.spines[:].set_visible(False)
    if below:
        parts[1].subplots(1, below)


def beside(matrix: np.ndarray, title: str) -> None:
    """A matrix by the size of its entries, beside the picture of a robot."""
    axes = plt.gcf().axes[-1]
    axes.imshow(matrix, cmap="Blues")
    axes.set(title=title, xticks=[], yticks=[])


def matrices(named: dict[str, np.ndarray]) -> None:
    """Matrices side by side, by the size of their entries."""
    for axes, (name, matrix) in zip(np.ravel(plt.gcf().subplots(1, len(named))), named.items(), strict=True):
        largest = np.abs(matrix).max()
        axes.imshow(matrix, cmap="RdBu_r", vmin=-largest, vmax=largest)
        axes.set(title=name, xticks=[], yticks=[])


def curve(names: Any, columns: np.ndarray, along: str, up: str, t: Any = None, marker: str = "") -> None:
    t = np.arange(len(columns)) if t is None else t
    for k in range(columns.shape[-1]):
        plt.plot(t, columns[:, k], marker=marker, label=names[k] if k < len(names) else None)
    plt.xlabel(along)
    plt.ylabel(up)
    if any(names):
        plt.legend(fontsize=8)


def printed(text: str) -> None:
    """What an example prints, as a terminal shows it."""
    figure = plt.gcf()
    lines = [line[:92] for line in text.strip().splitlines()[:16]]
    figure.set_size_inches(WIDTH, 0.5 + 0.17 * len(lines))
    figure.set_facecolor("#1e2430")
    figure.text(0.02, 0.5, "\n".join(lines), color="#e6e9ef", family="monospace", fontsize=8, va="center")


def draw(script: Path) -> Path:
    """Run an example and write its picture."""
    name, out = script.stem.split("_", 1)[1], io.StringIO()
    sys.argv = [str(script)]
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        found = runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    plt.figure(figsize=(WIDTH, 3), layout="constrained")
    by_name = {f.__name__: f for f in DRAWN}
    if name in by_name:
        by_name[name](found)
    else:
        printed(out.getvalue())
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.png"
    plt.savefig(path, dpi=100, facecolor=plt.gcf().get_facecolor())
    return path


def main(wanted: list[str]) -> None:
    for script in sorted(ROOT.glob("examples/*.py")):
        name = script.stem.split("_", 1)[1]
        if name in wanted or (not wanted and not (FOLDER / f"{name}.png").exists()):
            print(draw(script).relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
