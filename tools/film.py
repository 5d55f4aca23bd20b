"""The moving picture at the top of README: a quadruped trots down stairs, simulated and filmed by featherjet.

    python tools/film.py docs/assets/stairs.gif

Needs the extras `viewer` and `robots`, and a chromium.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

import featherjet as fj

LEGS = ("LF", "LH", "RF", "RH")
PERIOD, STRIDE, LIFT, STAND = 0.5, 0.16, 0.12, -0.5  # of the trot: [s], [m], [m]; height of the feet below the base
TREAD, RISE, STEPS, START = 0.4, 0.08, 5, 0.9  # of the stairs [m], and where they begin
PHASES = 40
CAMERA = (2.0, -3.1, 1.05), (1.5, 0.0, 0.12)  # where it is, and what it looks at [m]


def stairs() -> fj.HeightField:
    """Stairs that go down along x; each edge is a wall."""
    edges = START + TREAD * np.arange(STEPS)
    x = np.sort(np.concatenate([[-1.5], edges, edges + 1e-3, [edges[-1] + 3.0]]))
    z = -RISE * np.searchsorted(edges, x - 5e-4)
    y = np.array([-1.0, 1.0])
    return fj.HeightField(x, y, np.repeat(z[:, None], 2, 1))


def foot_paths(robot: fj.Robot) -> np.ndarray:
    """Where feet are in the base's frame over a period of the trot, (PHASES, 4, 3)."""
    phase = np.arange(PHASES) / PHASES
    paths = np.empty((PHASES, 4, 3))
    for k, leg in enumerate(LEGS):
        hip = robot.frame_placement(robot.neutral(), f"{leg}_FOOT")[:3, 3]
        at = (phase + (0.5 if leg in ("LF", "RH") else 0.0)) % 1.0
        swing = np.clip(at * 2, 0, 1)  # the first half of a foot's time is in the air
        ground = np.clip(at * 2 - 1, 0, 1)
        paths[:, k, 0] = hip[0] + STRIDE * np.where(at < 0.5, -0.5 + (1 - np.cos(np.pi * swing)) / 2, 0.5 - ground)
        paths[:, k, 1] = hip[1]
        paths[:, k, 2] = STAND + LIFT * np.where(at < 0.5, np.sin(np.pi * swing) ** 2, 0.0)
    return paths


def standing(robot: fj.Robot) -> np.ndarray:
    """A configuration (nq,) with bent knees, from which the others are found."""
    q = robot.neutral()
    for leg, sign in zip(LEGS, (1, -1, 1, -1), strict=True):
        for joint, angle in (("HFE", 0.6 * sign), ("KFE", -1.1 * sign)):
            q[robot.model.q_starts[robot.model.joint_index(f"{leg}_{joint}")]] = angle
    return q


def gait(robot: fj.Robot) -> np.ndarray:
    """Configurations (PHASES, nq) with the base at the origin and feet on their paths, by Newton's method."""
    found, q = [], standing(robot)
    for goals in foot_paths(robot):
        for _ in range(20):
            error = [g - robot.frame_placement(q, f"{leg}_FOOT")[:3, 3] for g, leg in zip(goals, LEGS, strict=True)]
            J = [robot.frame_jacobian(q, f"{leg}_FOOT", viewpoint="world_aligned")[:3, 6:] for leg in LEGS]
            q[7:] += np.linalg.lstsq(np.concatenate(J), np.concatenate(error), rcond=None)[0]
        found.append(q.copy())
    return np.array(found)


def walk(duration: float) -> fj.Trajectory:
    """The robot trots down the stairs: servos follow the gait, and know nothing of the stairs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the file's inertias
        robot = fj.load("anymal_c", root="free")
    poses = gait(robot)
    legs = np.concatenate([np.zeros(6), np.ones(robot.nv - 6)])

    def target(t: float) -> np.ndarray:
        at = t / PERIOD * PHASES
        k, share = int(at) % PHASES, at % 1.0
        return (1 - share) * poses[k] + share * poses[(k + 1) % PHASES]

    servo = fj.Servo(robot, kp=700.0 * legs, kd=18.0 * legs, target=target)
    ground = fj.Ground(robot, [fj.Foot(f"{leg}_FOOT", radius=0.03) for leg in LEGS], friction=0.9, terrain=stairs())
    q = poses[0].copy()
    q[2] = -STAND + 0.05
    return robot.simulate(q, np.zeros(robot.nv), servo, ground, dt=2e-3, duration=duration)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="the film: .webp, .gif, .png or .mp4")
    parser.add_argument("--duration", type=float, default=5.0, help="[s] (default: 5)")
    parser.add_argument("--fps", type=float, default=15.0)
    parser.add_argument("--size", type=int, nargs=2, default=(720, 300))
    args = parser.parse_args()
    motion = walk(args.duration)
    viewer = motion.view(play=False, port=18300)
    try:
        viewer.look(*CAMERA)
        print(viewer.record(args.path, fps=args.fps, size=tuple(args.size)))
    finally:
        viewer.stop()


if __name__ == "__main__":
    main()
