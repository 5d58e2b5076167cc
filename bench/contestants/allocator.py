"""The allocator settings of `keep_memory`, for peers to be given the same."""

from __future__ import annotations

from regard.compute import device as allocator

# As glibc reads them from the environment.
ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(allocator.LARGEST_KEPT),
    "MALLOC_TOP_PAD_": str(allocator.GROWTH),
}
