"""A recorded capture played as if it was live, and what `wedgewatch watch` makes of it."""
