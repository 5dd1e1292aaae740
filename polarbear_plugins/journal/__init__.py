"""The journal of a race: a file that keeps every finished run."""

from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import JournalRun
from polarbear_plugins.journal.replay import load_result

__all__ = [
    "Journal",
    "JournalRun",
    "load_result",
]
