"""What `mqindex doctor` looks at: each module looks at one side of the machine and gives lines."""
