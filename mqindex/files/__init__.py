"""The one room that touches a disk: maps, new files, renames, locks. Who writes elsewhere calls in here."""
