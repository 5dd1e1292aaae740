"""Errors and warnings of this package.  A message names the source, what was expected, what came and what to do."""

from __future__ import annotations


class PolarBearError(Exception):
    """An error that the user can fix; the command line shows its message as one line."""


class InvalidInputError(PolarBearError, ValueError):
    """A value passed to this package is not valid."""


class SourceError(PolarBearError):
    """A source of results is damaged or cannot be opened; the message names the place."""


class UnknownNameError(PolarBearError, LookupError):
    """No plugin knows a source, suite, portfolio or executor of that name."""


class MissingExtraError(PolarBearError, ImportError):
    """An optional dependency is not installed."""


class PolarBearWarning(UserWarning):
    """Something the user should know; the work continues."""


class InferenceWarning(PolarBearWarning):
    """A posterior is not good enough to decide on."""


class ModelWarning(PolarBearWarning):
    """Rankings do not look as the model says, and an answer rests on it."""


class PluginWarning(PolarBearWarning):
    """A plugin could not be loaded; the others were loaded."""


class RunWarning(PolarBearWarning):
    """A run failed and counts as having found nothing."""


def short(value: object) -> str:
    """Text of a value for a message, shortened if long."""
    try:
        text = repr(value)
    except ValueError:  # an int with thousands of digits has no repr
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def reason(problem: BaseException) -> str:
    """Text of another package's error for one of our messages: one line, shortened if long.

    >>> reason(ValueError("bad    news"))
    'bad news'
    """
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."
