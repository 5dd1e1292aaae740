"""A report: one self-contained HTML file about the result of a race or an analysis."""

from __future__ import annotations

from polarbear_plugins.report.page import render, write_report

__all__ = ["render", "write_report"]
