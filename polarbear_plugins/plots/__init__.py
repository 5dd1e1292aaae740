"""Figures, with the extra ``plots``.  Each function draws into given or new axes, and returns them."""
