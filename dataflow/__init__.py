"""Where the stream comes from and where the verdicts go."""
