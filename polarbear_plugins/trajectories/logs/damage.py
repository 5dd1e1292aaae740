"""What cannot be read of logs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from polarbear_plugins.errors import PolarBearWarning, SourceError


class Damage:
    """Files and runs that cannot be read: the first is an error, or all are collected for a warning."""

    def __init__(self, skip: bool, found: Sequence[str] = ()) -> None:
        self.skip = skip
        self.found = list(found)

    def add(self, message: str) -> None:
        """Raise the message as an error, or collect it if the user skips damage."""
        if not self.skip:
            raise SourceError(f"{message} Skip what is damaged with skip_damaged=true.")
        self.found.append(message)

    def warn(self, stacklevel: int) -> None:
        """Warn of everything that was skipped, if anything was."""
        if self.found:
            lines = "\n".join(self.found)
            warnings.warn(
                f"Skipped what is damaged ({len(self.found)}):\n{lines}", PolarBearWarning, stacklevel=stacklevel + 1
            )
