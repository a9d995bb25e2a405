"""The files of a disk as plain values, so that a test can damage them one byte at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.log.memory_disk import MemoryDisk

if TYPE_CHECKING:
    from angarium.log.disk import Disk

Image = dict[str, bytes]


def image_of(disk: Disk, folder: str) -> Image:
    """Return every file in `folder` with its content."""
    image: Image = {}
    for name in disk.list(folder):
        file = disk.open(f"{folder}/{name}")
        image[f"{folder}/{name}"] = file.pread(file.size(), 0)
        file.close()
    return image


def disk_with(image: Image) -> MemoryDisk:
    """Return a new disk that holds `image`."""
    disk = MemoryDisk()
    for name, content in image.items():
        disk.make_folder(name.rpartition("/")[0])
        disk.create(name).pwrite([content], 0)
    return disk


def flipped(image: Image, name: str, position: int, *, bit: int) -> Image:
    """Return `image` with one bit of one file changed."""
    content = bytearray(image[name])
    content[position] ^= 1 << bit
    return {**image, name: bytes(content)}


def cut(image: Image, name: str, length: int) -> Image:
    """Return `image` with one file cut to `length` bytes."""
    return {**image, name: image[name][:length]}


def without(image: Image, name: str) -> Image:
    """Return `image` without one file."""
    return {other: content for other, content in image.items() if other != name}
