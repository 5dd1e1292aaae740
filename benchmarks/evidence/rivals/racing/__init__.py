"""Racing a given portfolio: a file for each rival, their contests and the summary."""
