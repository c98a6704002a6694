"""Writes the captures of this folder: a small run is played by a seeded simulator, and its lines are laid out as a
job's logs and polls lie on disk. `python -m tests.captures.writing [NAME…]` rewrites them.

Nothing here reads a clock or an unseeded random number, so that rewriting an unchanged capture changes no byte.
"""
