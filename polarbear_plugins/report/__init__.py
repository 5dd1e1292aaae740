"""A report: one HTML file that tells what a race or an analysis found, and needs nothing else."""

from __future__ import annotations

from polarbear_plugins.report.page import render, write_report

__all__ = ["render", "write_report"]
