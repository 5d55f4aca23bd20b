"""Computed-torque control as a C program: export the dynamics of an arm, write the loop in C, compile it and run it.

The program has no Python in it and allocates no memory. Needs a C compiler.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import featherjet as fj

CONTROLLER = r"""
#include <math.h>
#include <stdio.h>

#include "arm.h"

static unsigned char workspace[ARM_WORKSPACE];

/* Where the arm should be at time t, and how fast: sines that differ from joint to joint. */
static void reference(double t, double *q, double *v, double *a) {
  for (int k = 0; k < ARM_NV; k++) {
    double w = 1 + 0.3 * k;
    q[k] = 0.4 * sin(w * t);
    v[k] = 0.4 * w * cos(w * t);
    a[k] = -0.4 * w * w * sin(w * t);
  }
}

int main(void) {
  const double h = 1e-3, kp = 400, kd = 40; /* critically damped, 20 rad/s */
  double q[ARM_NQ], v[ARM_NV], a[ARM_NV], tau[ARM_NV], qr[ARM_NQ], vr[ARM_NV], ar[ARM_NV];
  for (int k = 0; k < ARM_NV; k++) q[k] = 0.2, v[k] = 0; /* it starts beside the reference */
  for (int step = 0; step <= 1000; step++) {
    reference(h * step, qr, vr, ar);
    double error = 0;
    for (int k = 0; k < ARM_NV; k++) {
      error = fmax(error, fabs(q[k] - qr[k]));
      a[k] = ar[k] + kd * (vr[k] - v[k]) + kp * (qr[k] - q[k]);
    }
    if (step % 250 == 0) printf("%.2f s: %.12f rad from the reference\n", h * step, error);
    if (arm_inverse_dynamics(q, v, a, tau, workspace)) return 1; /* the controller */
    if (arm_forward_dynamics(q, v, tau, a, workspace)) return 1; /* the arm */
    for (int k = 0; k < ARM_NV; k++) v[k] += h * a[k], q[k] += h * v[k];
  }
  return 0;
}
"""


def main(compiler: str) -> None:
    robot = fj.load("arm")
    with tempfile.TemporaryDirectory() as folder:
        files = robot.export("inverse_dynamics", "forward_dynamics", out=folder)
        print("exported:", ", ".join(path.name for path in files))
        source, program = Path(folder, "controller.c"), Path(folder, "controller")
        source.write_text(CONTROLLER)
        subprocess.run([compiler, "-O2", source, f"{folder}/arm.o", "-lm", "-o", program], check=True)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    print(printed, end="")

    # The same loop in Python ends at the same place.
    h, w = 1e-3, 1 + 0.3 * np.arange(robot.nv)
    q, v, error = np.full(robot.nq, 0.2), np.zeros(robot.nv), np.inf
    for step in range(1001):
        t = h * step
        qr, vr, ar = 0.4 * np.sin(w * t), 0.4 * w * np.cos(w * t), -0.4 * w**2 * np.sin(w * t)
        error = np.abs(q - qr).max()
        tau = robot.inverse_dynamics(q, v, ar + 40 * (vr - v) + 400 * (qr - q))
        v = v + h * robot.forward_dynamics(q, v, tau)
        q = q + h * v
    last = float(printed.splitlines()[-1].split()[2])
    print(f"the same in Python: {error:.12f} rad, {abs(error - last):.0e} apart")
    assert error < 1e-2
    assert abs(error - last) < 1e-9


found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
if found:
    main(found)
else:
    print("this example needs a C compiler (cc, gcc or clang)")
