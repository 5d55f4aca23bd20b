"""Layer 1: spatial vectors and inertias, rotations and Lie groups. No model, no robots."""
