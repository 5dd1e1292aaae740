"""Display: HTML fragments, data frames and text for people.  Internal: used by the rooms above."""
