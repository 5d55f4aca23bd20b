"""Derivatives of inverse and forward dynamics by every method."""
