"""Shell completion of files, and of names that are not click choices."""

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
    """Let the shell complete file names."""
    return [CompletionItem(incomplete, type="file")]


def complete_names(names: Iterable[str]) -> Completer:
    """Complete these names; the option accepts others, too."""
    known = list(names)

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]

    return complete


def complete_registered(hook: str) -> Completer:
    """Complete the names that plugins provide through a hook, from the first lines of their docstrings."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PluginWarning)
            installed = installed_plugins().installed
        lines = [plugin.hooks[hook] for plugin in installed if hook in plugin.hooks]
        found = [(name, line) for line in lines for name in names_in(line)]
        return [CompletionItem(name, help=line) for name, line in found if name.startswith(incomplete)]

    return complete


def names_in(line: str) -> list[str]:
    """Names at the start of the first line of a docstring, up to a colon; text in parentheses is ignored.

    A placeholder such as SCENARIO or {JSON} is left out, and the name ends with the colon before it.

    >>> names_in("modcma-ssa, modcma-matrix, modcma:{JSON}: variants of CMA-ES; options preset, axis")
    ['modcma-ssa', 'modcma-matrix', 'modcma:']
    >>> names_in("optuna-samplers (option samplers=tpe,random), optuna-multifidelity (eta)")
    ['optuna-samplers', 'optuna-multifidelity']
    >>> names_in("yahpo:SCENARIO[:INSTANCE...], yahpo:demo: surrogates")
    ['yahpo:', 'yahpo:demo']
    """
    listed = re.sub(r"\([^)]*\)", "", line).partition(": ")[0]
    found = [re.match(r"[a-z0-9][a-z0-9._-]*(:[a-z0-9._-]*)?", part.strip()) for part in listed.split(",")]
    return [name[0] for name in found if name]
