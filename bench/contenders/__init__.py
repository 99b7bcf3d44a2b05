"""What is run in a fresh process: each function does its rounds and returns a `Result`."""
