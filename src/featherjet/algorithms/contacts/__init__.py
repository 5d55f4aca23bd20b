"""Dynamics of bodies held by contacts, and its derivatives."""
