"""Calls that touch a disk fail, each and in pairs: nothing acknowledged is lost, no traceback, no hang, no scrap."""
