import numpy as np
import numpy.typing as npt

def taken(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], /
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]: ...
