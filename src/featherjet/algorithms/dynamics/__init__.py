"""Inverse and forward dynamics, the mass matrix and its inverse, the Coriolis matrix."""
