"""What the shell completes: files, and names that are not choices of click."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from polarbear_plugins.errors import PluginWarning
from polarbear_plugins.plugins.manager import installed_plugins

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell, which knows files best."""
    return [CompletionItem(incomplete, type="file")]


def complete_names(names: Iterable[str]) -> Completer:
    """Complete some names; others may be as good."""
    known = list(names)

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]

    return complete


def complete_registered(hook: str) -> Completer:
    """Complete what plugins provide by a hook: the names with which the first lines of their docstrings begin."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PluginWarning)
            installed = installed_plugins().installed
        lines = [plugin.hooks[hook] for plugin in installed if hook in plugin.hooks]
        found = [(name, says) for says in lines for name in names_in(says)]
        return [CompletionItem(name, help=says) for name, says in found if name.startswith(incomplete)]

    return complete


def names_in(says: str) -> list[str]:
    """Names that the first line of a docstring tells, up to a colon or in front of brackets.

    What stands for something else, such as SCENARIO or {JSON}, ends a name behind its colon.

    >>> names_in("modcma-ssa, modcma-matrix, modcma:{JSON}: variants of CMA-ES; options preset, axis")
    ['modcma-ssa', 'modcma-matrix', 'modcma:']
    >>> names_in("optuna-samplers (option samplers=tpe,random), optuna-multifidelity (eta)")
    ['optuna-samplers', 'optuna-multifidelity']
    """
    listed = re.sub(r"\([^)]*\)", "", says).partition(": ")[0]
    found = [re.match(r"[a-z0-9][a-z0-9._-]*:?", part.strip()) for part in listed.split(",")]
    return [name[0] for name in found if name]
