"""Showing things: HTML fragments, data frames and text for people."""
