"""Trajectories: the best value so far against time, how runs are recorded and how they are read."""
