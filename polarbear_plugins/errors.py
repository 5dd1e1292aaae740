"""What this package raises.  A message says who, what was expected, what came and what to do."""

from __future__ import annotations

__all__ = [
    "InferenceWarning",
    "InvalidInputError",
    "MissingExtraError",
    "PluginWarning",
    "PolarBearError",
    "PolarBearWarning",
    "RunWarning",
    "SourceError",
    "UnknownNameError",
]


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
