"""The only room that changes a disk: maps, new files, renames, locks. Other rooms call it to write."""
