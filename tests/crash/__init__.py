"""Killed or failing at every step: every file is the old or the new one, and a second run finishes."""
