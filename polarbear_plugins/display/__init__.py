"""Display: HTML fragments, data frames and text for people.  The rooms above use it; users do not."""
