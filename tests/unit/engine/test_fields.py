import importlib
import pkgutil

import numpy as np

from walltime import compiled
from walltime.engine import kernel


def test_fields__do_not_hide_behind_attributes_of_numpys_records():
    taken = set(dir(np.void))
    hidden = {}
    for module in (one for package in (kernel, compiled) for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, np.dtype) and taken & set(value.names or ()):
                hidden[f"{module.name}.{name}"] = taken & set(value.names)
    assert not hidden
