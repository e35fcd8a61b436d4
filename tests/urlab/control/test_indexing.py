import numpy as np
import pytest

from urlab.control.indexing import index_of


@pytest.mark.parametrize("ids", [[], [3], [2, 3, 4], [4, 3, 2], [1, 3], [2, 2]])
def test_an_index_selects_the_ids_in_their_order(ids):
    assert np.arange(10)[index_of(ids)].tolist() == ids


def test_consecutive_ids_become_a_slice_so_that_reading_copies_nothing():
    assert index_of([2, 3, 4]) == slice(2, 5)
