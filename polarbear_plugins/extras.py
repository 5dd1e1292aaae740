"""Optional dependencies, imported when needed; the error for a missing one says how to install it."""

from __future__ import annotations

import importlib
from types import ModuleType

from polarbear_plugins.errors import MissingExtraError


def require(module: str, *, extra: str, who: str) -> ModuleType:
    """Import a module that an extra installs.

    Parameters
    ----------
    module
        Full name of the module.
    extra
        The extra of this distribution that installs it.
    who
        What needs it, for the message.

    Examples
    --------
    >>> require("no_such_module", extra="optuna", who="PolarBearPruner")
    Traceback (most recent call last):
    polarbear_plugins.errors.MissingExtraError: PolarBearPruner needs 'no_such_module', which is not installed. \
Install it with: pip install 'polarbear-plugins[optuna]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        # A module that is installed but lacks one of its own dependencies is broken, not missing.
        if missing.name not in {module, module.partition(".")[0]}:
            raise
        raise MissingExtraError(
            f"{who} needs '{missing.name}', which is not installed. "
            f"Install it with: pip install 'polarbear-plugins[{extra}]'",
            name=missing.name,
        ) from None
