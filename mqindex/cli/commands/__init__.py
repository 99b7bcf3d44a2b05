"""One module a command, each of one shape: options, call the library, print."""
