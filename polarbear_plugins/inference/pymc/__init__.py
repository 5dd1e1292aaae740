"""The engines of PyMC, as references and for priors of one's own."""
