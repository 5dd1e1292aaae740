"""``polarbear plugins``: the installed plugins, and those that failed to load."""

from __future__ import annotations

import warnings
from dataclasses import asdict

import click
from rich.text import Text

from polarbear_plugins.cli.output import WIDE, console, json_option, print_json, text_table
from polarbear_plugins.errors import PluginWarning
from polarbear_plugins.plugins.manager import installed_plugins


@click.command(short_help="What is installed, and what failed.")
@json_option
def plugins(as_json: bool) -> None:
    """List the installed plugins and what each provides, and the plugins that failed and why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # the list shows the failures itself
        found = installed_plugins()
    if as_json:
        print_json({"installed": [asdict(p) for p in found.installed], "failed": [asdict(p) for p in found.failed]})
        return
    out = console()
    narrow = out.width < WIDE
    table = text_table("plugin", *([] if narrow else ["from"]), "provides", "description")
    for plugin in found.installed:
        for row, (hook, description) in enumerate(sorted(plugin.hooks.items())):
            name, origin = (plugin.name, plugin.distribution) if row == 0 else ("", "")
            cells = [name, *([] if narrow else [origin]), hook.removeprefix("polarbear_"), description]
            table.add_row(*map(Text, cells))
    out.print(table)
    if narrow:
        origins = sorted({plugin.distribution for plugin in found.installed if plugin.distribution})
        out.print(f"from {', '.join(origins)}", soft_wrap=True)
    for failure in found.failed:
        origin = f" of {failure.distribution}" if failure.distribution else ""
        out.print(f"failed: {failure.name}{origin} ({failure.module}): {failure.reason}", style="red", soft_wrap=True)
    out.print(f"{len(found.installed)} installed, {len(found.failed)} failed")
