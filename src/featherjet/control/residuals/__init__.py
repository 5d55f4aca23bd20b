"""Costs and constraints as users write them: residuals of signals, with weights, activations and bounds."""
