"""Adapters: from the results of other tools to trajectories.  Imports as ``polarbear_plugins.adapters``."""
