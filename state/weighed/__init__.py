"""How each gate was weighed: every requirement, clause and excuse, with what it saw and why it did not fire."""
