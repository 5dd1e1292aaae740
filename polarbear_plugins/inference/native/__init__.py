"""The native engine: Laplace approximations, corrected by importance sampling and Markov moves."""
