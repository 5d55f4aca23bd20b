"""Two clips of a humanoid are joined: it leaves one motion and enters the other at the right velocity."""

import tempfile
from pathlib import Path

import numpy as np

import featherjet as fj

robot = fj.Robot(fj.models.humanoid(), backend="compiled", unroll=False)
start = {name: at for name, at in zip(robot.joint_names, robot.model.q_starts, strict=True)}


def clip(swings: dict[str, tuple[float, float]], turn: float) -> fj.Clip:
    """A second of swinging joints, amplitude and phase of each, while the whole robot turns round."""
    t = np.arange(0.0, 1.0, 0.02)
    q = np.tile(robot.neutral(), (len(t), 1))
    for name, (amplitude, phase) in swings.items():
        q[:, start[name]] = amplitude * np.sin(5 * t + phase)
    heading = turn + 0.6 * t
    q[:, 5], q[:, 6] = np.sin(heading / 2), np.cos(heading / 2)
    return fj.Clip(q, dt=0.02)


wave = clip({"left_shoulder_pitch": (0.9, 0.0), "left_elbow": (0.5, 1.0), "waist_yaw": (0.3, 0.0)}, turn=0.0)
march = clip({"left_hip_pitch": (0.5, 2.0), "right_hip_pitch": (-0.5, 2.0), "right_shoulder_pitch": (0.6, 2.5)}, 1.2)

# Torques are weighted by the strength of their motors. There is no ground, so forces on the pelvis cost little.
strength = robot.limits().effort
weights = np.where(np.isfinite(strength), (100 / strength) ** 2, 1.0)
result = fj.transition(robot, wave, march, duration=0.8, weights=weights, root_forces="penalised", root_weight=0.01)
print(result)
print(f"  {result.report.iterations} iterations, {result.report.seconds:.1f} s")
for name, energy in result.baselines().items():
    print(f"  {result.energy / energy:.1%} of the energy of a {name}")
    assert result.energy < energy

fine = fj.transition(
    robot, wave, march, 0.8, weights=weights, root_forces="penalised", root_weight=0.01, intervals=24, initial=result
)
print(f"  with twice the knots {fine.energy / result.energy:.4f} of that")
assert 0.99 < fine.energy / result.energy <= 1.0001

whole = result.joined()
q = np.asarray(whole.q)
print(f"joined: {len(q)} samples, {whole.dt * (len(q) - 1):.2f} s")

# At the joins, position and velocity are continuous.
near = robot.difference(result.q(1e-6), result.q(0.0)) / -1e-6
before = robot.difference(np.asarray(wave.q)[-2], np.asarray(wave.q)[-1]) / wave.dt
print(f"  velocity differs by {np.abs(near - before).max():.2f} rad/s from that of the clip's last step")
assert np.allclose(result.q(0.0), np.asarray(wave.q)[-1])
assert np.allclose(result.q(0.8), np.asarray(march.q)[0])
assert np.abs(near - before).max() < 0.3

with tempfile.TemporaryDirectory() as folder:
    path = result.to_bvh(Path(folder) / "joined.bvh")
    print(f"BVH: {path.stat().st_size} bytes, for any program that reads motion capture")
