"""Profile files as people have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from angarium.backup.s3_settings import s3_settings
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path


def test_a_profile_is_read_from_both_files(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        "[default]\nregion = here\n\n[profile minio]\nendpoint_url = http://minio:9000\n"
    )
    (tmp_path / ".aws" / "credentials").write_text(
        "[minio]\nAWS_ACCESS_KEY_ID = AKIA\naws_secret_access_key = a%b/c+d=\n"
    )
    found = s3_settings("s3://b", {"AWS_PROFILE": "minio"}, home=tmp_path)
    assert (found.endpoint, found.region) == ("http://minio:9000", None)
    assert (found.access_key, found.secret_key) == ("AKIA", "a%b/c+d=")
    assert s3_settings("s3://b", {}, home=tmp_path).region == "here"


def test_a_file_that_is_none_is_named_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("hush hush\n")
    with pytest.raises(InvalidArgument, match="keys cannot be read") as raised:
        s3_settings("s3://b", {"AWS_SHARED_CREDENTIALS_FILE": str(file)}, home=tmp_path)
    assert "hush" not in str(raised.value)
