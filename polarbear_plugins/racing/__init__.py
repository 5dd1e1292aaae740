"""The race: its settings, its rules and its result.  Nothing here runs an algorithm."""
