"""The last view of a queue, for a request of the next units."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import Mapping
from mqindex._native.queue_view import QueueView
from mqindex.rocketmq.log.expiry import LOOK_AGAIN_SECONDS
from mqindex.rocketmq.queue.queue_files import End, UnitFiles


class LastView:
    """Views of the files of one queue, of which only the last one is in use. For one thread at a time."""

    def __init__(self, units: UnitFiles) -> None:
        self._units = units
        self._view: QueueView | None = None

    def forget(self) -> None:
        """Use no view from now on, until another is made."""
        if self._view is not None:
            self._view.forget()
            self._view = None

    def of(self, queue_offset: int, low: int, end: End, parts: npt.NDArray[np.int64]) -> QueueView | None:
        """The file of a queue offset, and the end of the queue, whose first unit is `low`. `parts` as for `take_units`.

        None: more than the last file must be read to see that the queue has grown; or it is elsewhere.
        """
        self.forget()
        units = self._units
        here = next(units.stretches(queue_offset, queue_offset + 1), None)
        if here is None or not isinstance(here.buf, Mapping) or units.is_full(end.number):
            return None
        if not end.first < end.number < end.first + len(end.buf) // units.unit_size:
            return None
        places = min(len(here.buf), units.files[units.index_of(queue_offset)].size) // units.unit_size
        first_path = os.fsencode(units.files[0].path)
        self._view = QueueView(
            here.buf, here.first, places, end.buf, end.first, low, end.number, parts, first_path, LOOK_AGAIN_SECONDS
        )
        return self._view
