"""Phases at work: compiled code that gives values and derivatives at all knots of a phase, and rolls motions out."""
