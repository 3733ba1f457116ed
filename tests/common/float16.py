"""Whether this torch computes in float16 on CPUs."""

import pytest
import torch

OLD = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 2)
FLOAT16 = pytest.mark.skipif(OLD, reason="torch before 2.2 multiplies no float16 on CPUs")
