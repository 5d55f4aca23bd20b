"""Model files: URDF, MJCF, saved models, and the catalogue of robots by name."""
