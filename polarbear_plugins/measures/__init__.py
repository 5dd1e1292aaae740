"""The traditional anytime measures, and Bayesmark's scores."""
