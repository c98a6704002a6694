"""Recorded runs: what they hold, what a right verdict says of them, and the laws that every record keeps."""
