"""Logs of benchmark runs: what the readers of IOHprofiler's and COCO's files share."""
