"""The thread machine: thread-level kernels on NumPy, exact about order. It knows instructions, no op and no pass.

What it takes a kernel to mean, where the instruction table leaves a choice:

- An agent is a warp; its lanes run together under a mask but are ordered among themselves only by a warp-wide Sync (or
  by what they have waited for). Statements outside of roles are executed by all warps.
- A shared buffer lies at `kernel.offsets[buffer]` bytes and holds prod(shape) elements (times `kernel.versions`, where
  that names it). Its `Addr.offset` counts elements of the buffer, also under a swizzle; descriptors and tensor copies
  permute the bits of the byte address, as the hardware does.
- `BarWait.count` is the number of the awaited phase from 0, and -1 the phase before the first, which is complete.
- `Sync.id` and `threads` are taken as the hardware takes them; without an id a role's barrier is the role's own, and
  id 0 is the block's. Mode "wait" counts as an arrival too, as bar.sync does.
- cp.async, LdsDirect: nobody may touch the destination until the issuing lane's WaitGroup, and then only that lane.
- A TMA or bulk load belongs to the barrier's phase that is current at its issue. Blocks may not end while a store's
  source is being read or a load has not been waited for.
- Order between blocks exists through atomics only, and is kept for whole blocks; blocks run one after another.
- Undefined values may be copied, selected away and stored to shared memory; they are reported in a global store, an
  address, a branch, a predicate, an atomic and a matrix operand.
"""

from .faults import Fault
from .launch import ThreadRun, run, unmet
from .mutate import Mutant, caught, mutants
from .rules import RULES, Rule

__all__ = ["RULES", "Fault", "Mutant", "Rule", "ThreadRun", "caught", "mutants", "run", "unmet"]
