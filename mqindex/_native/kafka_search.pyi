import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

def find_batches(
    buf: Buffer, stop: int, starts: npt.NDArray[np.int64], times: npt.NDArray[np.int64], /
) -> tuple[npt.NDArray[np.int64], int | None]: ...
def batches_at(buf: Buffer, positions: npt.NDArray[np.int64], /) -> memoryview: ...
def first_not_below(
    values: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    /,
) -> npt.NDArray[np.int64]: ...
