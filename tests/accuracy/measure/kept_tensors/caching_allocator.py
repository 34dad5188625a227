"""PyTorch's caching allocator on one stream of a GPU that never runs short (c10/cuda/CUDACachingAllocator.cpp).

What it calls allocated is the size of the blocks that it gave: 512 bytes at least, and a whole free block where what
would be left of it is too small to be split off."""
import bisect

UNIT, SMALL, SMALL_SEGMENT, LARGE_SEGMENT, OWN_SEGMENT, ROUND = 512, 2**20, 2 * 2**20, 20 * 2**20, 10 * 2**20, 2 * 2**20


def rounded(size, unit):
    return -(-size // unit) * unit


class Block:
    def __init__(self, address, size, before=None, after=None):
        self.address, self.size, self.before, self.after, self.free = address, size, before, after, False


class CachingAllocator:
    def __init__(self):
        self.allocated, self.end = 0, 0
        self.free = {True: [], False: []}  # by pool (small, large): (size, address, block), sorted

    def _keep(self, block, small):
        block.free = True
        bisect.insort(self.free[small], (block.size, block.address, block), key=lambda entry: entry[:2])

    def _take(self, block, small):
        del self.free[small][bisect.bisect_left(self.free[small], (block.size, block.address), key=lambda entry: entry[:2])]
        block.free = False

    def _segment(self, size, small):
        whole = SMALL_SEGMENT if small else LARGE_SEGMENT if size < OWN_SEGMENT else rounded(size, ROUND)
        self.end += whole
        return Block(self.end - whole, whole)

    def give(self, size):
        """(the block, the pool) of a request."""
        size = max(UNIT, rounded(size, UNIT))
        small = size <= SMALL
        place = bisect.bisect_left(self.free[small], (size, -1), key=lambda entry: entry[:2])
        if place < len(self.free[small]):
            block = self.free[small][place][2]
            self._take(block, small)
        else:
            block = self._segment(size, small)
        left = block.size - size
        if left >= UNIT if small else left > SMALL:
            rest = Block(block.address + size, left, block, block.after)
            if block.after:
                block.after.before = rest
            block.after, block.size = rest, size
            self._keep(rest, small)
        self.allocated += block.size
        return block, small

    def take_back(self, given):
        block, small = given
        self.allocated -= block.size
        for other in (block.before, block.after):
            if other is None or not other.free:
                continue
            self._take(other, small)
            first, second = (other, block) if other is block.before else (block, other)
            first.size, first.after = first.size + second.size, second.after
            if second.after:
                second.after.before = first
            block = first
        self._keep(block, small)
