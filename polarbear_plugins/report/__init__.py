"""A report: one self-contained HTML file about the result of a race or an analysis; figures and tables for papers."""

from __future__ import annotations

from polarbear_plugins.report.next_steps import Kept
from polarbear_plugins.report.page import render, write_report
from polarbear_plugins.report.paper_figures import write_figures
from polarbear_plugins.report.paper_tables import paper_table

__all__ = ["Kept", "paper_table", "render", "write_figures", "write_report"]
