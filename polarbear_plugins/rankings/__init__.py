"""Rankings: who is ahead of whom at each timepoint on each instance."""
