"""Choosing an algorithm, or several, under a preference over time and a risk profile."""
