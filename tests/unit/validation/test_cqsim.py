"""The published schedule of CQSim+."""

import pytest

from tests.traces import field_path
from validation.cqsim import equal_starts


@pytest.mark.slow
def test_schedule_of_cqsim__follows_from_its_rule():
    assert equal_starts(field_path("cqsim/theta_1000.swf"), field_path("cqsim/theta_1000.rst")) == (1000, 1000)
