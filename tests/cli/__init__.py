"""The shell: every command, its exit codes, its output for people and for programs, and how it fails."""
