"""The array types that signatures share."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
IntVector: TypeAlias = NDArray[np.int32]
BoolVector: TypeAlias = NDArray[np.bool_]
