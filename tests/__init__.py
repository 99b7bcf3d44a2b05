"""The tests of mqindex; a package, so that their support modules can be run (`python -m tests.support.big_log`)."""
