"""Watching a race: a page on this computer, or a view in a notebook."""

from polarbear_plugins.watch.journal_page import JournalPage
from polarbear_plugins.watch.notebook import NotebookView
from polarbear_plugins.watch.race_page import RacePage

__all__ = [
    "JournalPage",
    "NotebookView",
    "RacePage",
]
