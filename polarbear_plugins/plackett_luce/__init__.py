"""The Plackett-Luce likelihood: its sufficient statistics, ties and pairs.  Arrays in, arrays out."""
