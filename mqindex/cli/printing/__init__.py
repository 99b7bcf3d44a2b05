"""What the commands print: rows, tables and JSON, findings and reports, and progress."""
