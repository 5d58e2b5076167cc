"""The C library's allocator, kept from giving memory back that the next update needs again.

Each update makes and frees the same large tensors. By default glibc asks the system for every one
of them and returns it at once, and the system clears the pages each time: for a small model that
cost about a tenth of the training time where it was measured.
"""

from __future__ import annotations

import ctypes

# The names and numbers of glibc's malloc.h.
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
LARGEST = 2**31 - 1
STEP = 64 * 2**20


def keep_memory() -> bool:
    """Keep freed memory in this process, for all tensors to come; return whether that was possible.

    Nothing happens where the C library is not glibc.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no mallopt, or no such library at all
        return False
    options = {
        MMAP_MAX: 0,  # large blocks come from the heap too, which is kept
        TRIM_THRESHOLD: LARGEST,  # the end of the heap is kept
        TOP_PAD: STEP,  # and grows in large steps
    }
    return all(set_option(name, value) == 1 for name, value in options.items())
