"""What this package raises.  A message says who, what was expected, what came and what to do."""

from __future__ import annotations


class PolarBearError(Exception):
    """An error that the user can mend; the command line shows its message as one line."""


class InvalidInputError(PolarBearError, ValueError):
    """A value handed to this package does not mean anything."""


class SourceError(PolarBearError):
    """A source of results is damaged, or cannot be opened; names the place."""


class UnknownNameError(PolarBearError, LookupError):
    """Nobody knows a source, suite, portfolio or executor of that name."""


class MissingExtraError(PolarBearError, ImportError):
    """An optional dependency is not installed."""


class PolarBearWarning(UserWarning):
    """Something the user should know about, although the work goes on."""


class InferenceWarning(PolarBearWarning):
    """A posterior is not good enough to decide on."""


class PluginWarning(PolarBearWarning):
    """A plugin could not be loaded; the others were."""


class RunWarning(PolarBearWarning):
    """A run failed and counts as having found nothing."""


def short(value: object) -> str:
    """Text of a value for a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits has no text
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def reason(problem: BaseException) -> str:
    """Text of another package's error for a message of ours: one line, cut where it is long.

    >>> reason(ValueError("bad    news"))
    'bad news'
    """
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."
