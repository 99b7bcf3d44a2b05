"""The power goes at a random moment: what was acknowledged is there when the disk is mounted again."""
