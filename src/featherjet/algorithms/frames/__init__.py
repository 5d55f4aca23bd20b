"""Kinematics, Jacobians of frames, energies, momenta, and their derivatives."""
