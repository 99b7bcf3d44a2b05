"""The checks of `mqindex doctor`: each module checks one part of the machine and gives lines."""
