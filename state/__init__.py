"""What is remembered and what it comes to: trackers, gates, verdicts. No engine, no file, no clock of its own."""
