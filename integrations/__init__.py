"""Integrations with optimizers, benchmark suites and executors.  Imports as ``polarbear_plugins.integrations``."""
