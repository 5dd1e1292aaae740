"""What else one could have used: a file for each rival, and what they share."""
