"""The journal of a race: a file that keeps every finished run."""
