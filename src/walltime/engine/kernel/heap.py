"""A binary heap on an array of records with the fields `rank`, `tie` and `job`: the lowest rank comes first, ties by the lowest tie."""

from walltime.compiled.jit import kernel


@kernel
def push(heap, size, rank, tie, job):
    """Add a job to a heap of `size` jobs."""
    i = size
    while i > 0:
        parent = heap[(i - 1) // 2]
        if parent.rank < rank or (parent.rank == rank and parent.tie <= tie):
            break
        heap[i].rank, heap[i].tie, heap[i].job = parent.rank, parent.tie, parent.job
        i = (i - 1) // 2
    heap[i].rank, heap[i].tie, heap[i].job = rank, tie, job


@kernel
def hasten(heap, job, rank):
    """Move a job of a heap forward to a lower rank."""
    i = 0
    while heap[i].job != job:
        i += 1
    push(heap, i, rank, heap[i].tie, job)


@kernel
def pop(heap, size):
    """Remove the first job from a heap of `size` jobs, and return it."""
    first, last = heap[0].job, heap[size - 1]
    rank, tie, job = last.rank, last.tie, last.job
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1:
            left, right = heap[child], heap[child + 1]
            if right.rank < left.rank or (right.rank == left.rank and right.tie < left.tie):
                child += 1
        least = heap[child]
        if rank < least.rank or (rank == least.rank and tie <= least.tie):
            break
        heap[i].rank, heap[i].tie, heap[i].job = least.rank, least.tie, least.job
        i = child
    heap[i].rank, heap[i].tie, heap[i].job = rank, tie, job
    return first


@kernel
def push_candidate(state, candidates, rank, tie, job):
    """Add a candidate, a job or a place of the queue, to a heap of `state.candidates` items."""
    push(candidates, state.candidates, rank, tie, job)
    state.candidates += 1


@kernel
def pop_candidate(state, candidates):
    """Remove the candidate of the lowest rank, ties by the lowest tie, and return it."""
    state.candidates -= 1
    return pop(candidates, state.candidates + 1)
