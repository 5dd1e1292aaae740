"""``python -m polarbear_plugins.cli``."""

from polarbear_plugins.cli import main

main()
