"""Configuring in a space: a file for each rival, their tasks and the summary."""
