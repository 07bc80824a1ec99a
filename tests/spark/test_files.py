"""Files in folders that a running query watches."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpunct.spark.files import put


def test_a_file_is_not_there_before_all_of_it_is(tmp_path: Path) -> None:
    path = tmp_path / "in" / "0.parquet"

    def write(part: Path) -> None:
        part.write_text("all of it")
        assert part.name.startswith("."), "a name that Spark leaves alone"
        assert not path.exists()

    put(path, write, moment=5)
    assert path.read_text() == "all of it"
    assert path.stat().st_mtime == 5
    assert list(path.parent.iterdir()) == [path]


def test_a_file_whose_writing_fails_never_appears(tmp_path: Path) -> None:
    def write(part: Path) -> None:
        part.write_text("the first half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        put(tmp_path / "0.parquet", write)
    assert not (tmp_path / "0.parquet").exists()
