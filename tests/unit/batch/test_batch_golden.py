"""What an earlier version wrote is still read, and still written the same."""

from __future__ import annotations

import pytest
from tests.golden.batch.files import names, read
from tests.golden.batch.samples import described, samples

from angarium.batch import Batch
from angarium.batch.layout import VERSION


@pytest.mark.parametrize("name", names())
def test_a_golden_batch_is_still_read(name: str) -> None:
    stored, contents = read(name)
    batch = Batch.parse(stored, compacted=True)
    batch.verify()
    assert described(batch) == contents


@pytest.mark.parametrize("sample", samples())
def test_the_layout_has_not_changed_under_its_version(sample: str) -> None:
    stored, contents = read(f"v{VERSION}-{sample}")
    # Compressors may pack differently from release to release; what they unpack to may not.
    if contents["codec"] == "NONE":
        assert bytes(samples()[sample]) == stored
    else:
        again = Batch.parse(samples()[sample], compacted=True)
        assert list(again) == list(Batch.parse(stored, compacted=True))
