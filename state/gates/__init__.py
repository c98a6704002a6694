"""The gates: requirements and clauses over a case, in the order of their rules. No memory."""
