"""Every call that touches a disk fails once: nothing acknowledged is lost, no traceback, no hang, no scrap."""
