"""Scenarios: one text file, one idea, with the timeline of what is said when. See README.md beside this file."""
