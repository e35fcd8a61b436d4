import pytest

import urlab.export
from urlab.errors import BadValue
from urlab.export import ExportFormat, Mp4, export_format


def test_a_format_is_found_by_its_name():
    assert export_format("mp4") is Mp4


def test_an_unknown_format_is_refused_with_those_that_exist():
    with pytest.raises(
        BadValue, match="there is no export format 'betamax'; there are: hdf5, lerobot, mcap, mp4, parquet"
    ):
        export_format("betamax")


def test_no_two_formats_share_a_name():
    with pytest.raises(TypeError, match="export format 'mp4' is already Mp4"):

        class _Other(ExportFormat, name="mp4"):
            pass


def test_the_front_door_is_what_it_promises():
    assert all(hasattr(urlab.export, name) for name in urlab.export.__all__)
