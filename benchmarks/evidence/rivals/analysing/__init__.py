"""Analysing finished runs: a file for each rival, their data and the summary."""
