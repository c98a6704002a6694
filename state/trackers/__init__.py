"""Trackers: each remembers one matter, folds beats, shows an immutable view."""
