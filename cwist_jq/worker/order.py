"""Which queue is asked first when there is room for a job."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Order", "Strict", "Weighted"]


class Order:
    """Chooses among queues by their numbers."""

    ranks = 1  # how many lines there are for jobs that wait in this process

    def rank(self, index: int) -> int:
        """The line for the jobs of a queue."""
        del index
        return 0

    def first(self, hungry: Sequence[int]) -> int:
        """Which of these queues, which may all have jobs, is asked next."""
        raise NotImplementedError

    def share(self, index: int, hungry: Sequence[int], room: int) -> int:
        """For how many jobs it is asked."""
        del index, hungry
        return room

    def came(self, index: int, count: int) -> None:
        """A queue has given so many jobs."""

    def returned(self, index: int, hungry: Sequence[int]) -> None:
        """A queue that was empty may have jobs again, as these have."""


class Strict(Order):
    """The first queue that has jobs, always."""

    def __init__(self, count: int) -> None:
        """For so many queues."""
        self.ranks = count

    def rank(self, index: int) -> int:
        """The jobs of an earlier queue go first here too."""
        return index

    def first(self, hungry: Sequence[int]) -> int:
        """The earliest."""
        return min(hungry)


class Weighted(Order):
    """Each in turn, so that over time the jobs taken are as the weights."""

    def __init__(self, weights: Sequence[int]) -> None:
        """A weight for each queue."""
        self._weights = tuple(weights)
        self._taken = [0.0] * len(weights)

    def first(self, hungry: Sequence[int]) -> int:
        """The one that has had the least of its share."""
        return min(hungry, key=lambda index: (self._taken[index], index))

    def share(self, index: int, hungry: Sequence[int], room: int) -> int:
        """Its part of the room, at least one job."""
        weights = self._weights
        return max(1, room * weights[index] // sum(weights[one] for one in hungry))

    def came(self, index: int, count: int) -> None:
        """Counts against its share."""
        self._taken[index] += count / self._weights[index]

    def returned(self, index: int, hungry: Sequence[int]) -> None:
        """What it did not take while it was empty is not made up for."""
        others = [self._taken[one] for one in hungry if one != index]
        if others:
            self._taken[index] = max(self._taken[index], min(others))
