"""Inference: from rankings and a prior to a posterior."""
