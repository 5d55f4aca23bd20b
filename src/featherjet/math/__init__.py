"""Spatial vectors and inertias, rotations and Lie groups. No model, no robots."""
