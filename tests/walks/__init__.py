"""Seeded walks: whole runs made at random and judged by the real flow. README.md tells how to replay one.

Healthy runs must never be killed; a fault put into one at a random time must be found, and not before it is shown.
"""
