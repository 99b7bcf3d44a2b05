"""An index file with the entries of each slot side by side, written anew from what the file before holds."""

from __future__ import annotations

from tests.reference.index_file import ENTRY, HEADER, IndexFile

__all__ = ["sort"]


def sort(file: IndexFile, hash_slot_num: int, index_num: int) -> IndexFile:
    """The entries in the order (slot, number before), each linked to its neighbour; the header as it was."""
    out = IndexFile(hash_slot_num, index_num)
    out.index_count = file.index_count
    used = 0
    by_slot = sorted(file.entries(), key=lambda entry: entry[0] % hash_slot_num)  # keeps the order of equals
    for number, (hashed, phy_offset, seconds, _) in enumerate(by_slot, 1):
        slot = hashed % hash_slot_num
        previous = out.slot(slot)
        used += previous == 0
        ENTRY.pack_into(out.data, 40 + 4 * hash_slot_num + 20 * number, hashed, phy_offset, seconds, previous)
        out.data[40 + 4 * slot : 44 + 4 * slot] = number.to_bytes(4, "big")
    header = file.header
    slot_count = header[4] if hash_slot_num == file.hash_slot_num else used
    HEADER.pack_into(out.data, 0, *header[:4], slot_count, header[5])
    return out
