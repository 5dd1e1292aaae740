"""The posterior of the ratings, and who is better than whom under it."""
