"""Experiments from beginning to end: races and campaigns."""
