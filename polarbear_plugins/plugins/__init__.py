"""Hook specifications, the plugin manager, and the two plugins that need nothing else."""
