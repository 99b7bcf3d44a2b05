"""The twin: what the brokers do, in plain Python, slow and obvious, written from the format document alone.

It is the oracle of the fast code, so nothing of the package is imported here.
"""
