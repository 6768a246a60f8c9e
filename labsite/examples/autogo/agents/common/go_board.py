"""Go on 2x2 to 9x9 boards. Only the standard library.

Rules: a move that captures nothing and leaves its own chain without liberties is not allowed (no suicide, of one stone or of many); a move
may not bring back any earlier position of the game (positional superko; a pass brings back nothing); two passes in a row end the game; area
scoring (stones, and empty regions that reach one colour only), every stone on the board alive. Tromp and Taylor's rules except for suicide.

A point is a whole number, `row * size + column`, row 0 below and column 0 left, as GTP's A1; PASS is `size * size`. Sets of points are
whole numbers too, one bit a point, so that a chain or its liberties are joined and compared in one step.
"""

from functools import cache

BLACK, WHITE = 0, 1
SMALLEST, LARGEST = 2, 9


class IllegalMove(ValueError):
    """The move is against the rules; the message says which one."""


class Geometry:
    """What depends on the size of a board alone: neighbours of points, edges."""

    __slots__ = ("adjacent", "adjacent_mask", "full", "not_first_column", "not_last_column", "pass_move", "size")

    def __init__(self, size: int) -> None:
        if not SMALLEST <= size <= LARGEST:
            raise ValueError(f"a board of {size} is not between {SMALLEST} and {LARGEST}")
        self.size = size
        self.pass_move = size * size
        self.full = (1 << size * size) - 1
        first_column = sum(1 << row * size for row in range(size))
        self.not_first_column = self.full & ~first_column
        self.not_last_column = self.full & ~(first_column << size - 1)
        self.adjacent_mask = tuple(self.neighbours(1 << point) for point in range(size * size))
        self.adjacent = tuple(tuple(members(mask)) for mask in self.adjacent_mask)

    def neighbours(self, mask: int) -> int:
        """All points next to a point of `mask`; points of `mask` itself among them where two of it touch."""
        sideways = (mask & self.not_last_column) << 1 | (mask & self.not_first_column) >> 1
        return (sideways | mask << self.size | mask >> self.size) & self.full

    def flood(self, seed: int, within: int) -> int:
        """The points of `within` that are joined to `seed` by points of `within`; `seed` lies within."""
        reached = seed
        while grown := self.neighbours(reached) & within & ~reached:
            reached |= grown
        return reached


@cache
def geometry(size: int) -> Geometry:
    """The geometry of a size, made once. Raises ValueError outside 2 to 9."""
    return Geometry(size)


def members(mask: int) -> list[int]:
    """The points of a set, lowest first."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found


class Board:
    """A game under way: stones, whose turn it is, and the positions so far. `copy` gives an independent one."""

    __slots__ = ("_chain", "_dense", "_liberties", "_members", "_seen", "geometry", "moves", "passes", "stones", "turn")

    def __init__(self, size: int) -> None:
        self.geometry = geometry(size)
        self.stones = [0, 0]
        self.turn = BLACK
        self.passes = 0  # in a row, just before this
        self.moves = 0
        points = size * size
        self._chain = [-1] * points  # the point that stands for the chain at a point, -1 where it is empty
        self._members = [0] * points  # by that point
        self._liberties = [0] * points
        self._seen = {0}
        self._dense = True  # nothing was captured yet: each position has a stone more than the one before, so none can come back

    def copy(self) -> "Board":
        twin = Board.__new__(Board)
        twin.geometry, twin.turn, twin.passes, twin.moves, twin._dense = self.geometry, self.turn, self.passes, self.moves, self._dense
        twin.stones = self.stones[:]
        twin._chain, twin._members, twin._liberties = self._chain[:], self._members[:], self._liberties[:]
        twin._seen = self._seen.copy()
        return twin

    def restarted(self, turn: int) -> "Board":
        """The same stones as the start of a game, with `turn` to move: nothing is a repetition yet."""
        fresh = self.copy()
        fresh.turn, fresh.passes, fresh.moves, fresh._seen = turn, 0, 0, {self.position}
        return fresh

    @property
    def size(self) -> int:
        return self.geometry.size

    @property
    def is_over(self) -> bool:
        return self.passes >= 2

    @property
    def position(self) -> int:
        """The stones as one number, the same for the same stones: what superko compares."""
        return self.stones[BLACK] | self.stones[WHITE] << self.geometry.pass_move

    def at(self, point: int) -> int | None:
        """Colour of the stone at a point, None where it is empty."""
        bit = 1 << point
        return BLACK if self.stones[BLACK] & bit else WHITE if self.stones[WHITE] & bit else None

    def liberties(self, point: int) -> int:
        """Liberties of the chain at a point, as a set; 0 where there is no stone."""
        chain = self._chain[point]
        return self._liberties[chain] if chain >= 0 else 0

    def why_not(self, move: int) -> str | None:
        """Why the side to move may not play there, in words; None where it may."""
        if move == self.geometry.pass_move:
            return None
        if not 0 <= move < self.geometry.pass_move:
            return "the point is not on the board"
        bit, own, other = 1 << move, self.stones[self.turn], self.stones[1 - self.turn]
        if (own | other) & bit:
            return "the point is occupied"
        chain, liberties = self._chain, self._liberties
        captured, breathes = 0, bool(self.geometry.adjacent_mask[move] & ~(own | other))
        for point in self.geometry.adjacent[move]:
            neighbour = chain[point]
            if neighbour >= 0:
                in_atari = liberties[neighbour] == bit
                if own >> point & 1:
                    breathes = breathes or not in_atari
                elif in_atari:
                    captured |= self._members[neighbour]
        if not captured and not breathes:
            return "the move is suicide"
        if self._dense and not captured:
            return None
        return "the move repeats a position" if self._after(own | bit, other ^ captured) in self._seen else None

    def is_legal(self, move: int) -> bool:
        return self.why_not(move) is None

    def legal_points(self) -> list[int]:
        """The points where the side to move may play, lowest first; a pass is legal besides."""
        empty = self.geometry.full & ~(self.stones[BLACK] | self.stones[WHITE])
        return [point for point in members(empty) if self.why_not(point) is None]

    def play(self, move: int) -> int:
        """Play for the side to move; the captured stones as a set. Raises IllegalMove, and then nothing has changed."""
        if (reason := self.why_not(move)) is not None:
            raise IllegalMove(reason)
        return self.play_legal(move)

    def play_legal(self, move: int) -> int:
        """`play` without asking the rules: for a move that `legal_points` has just named, or a pass."""
        self.moves += 1
        self.turn ^= 1
        if move == self.geometry.pass_move:
            self.passes += 1
            return 0
        self.passes = 0
        colour = 1 - self.turn
        captured = self._place(move, colour)
        if captured:
            self._dense = False
            self._remove(captured, colour)
        self._seen.add(self.position)
        return captured

    def area(self, colour: int) -> int:
        """The points of a colour by area scoring, as a set."""
        own, other, full = self.stones[colour], self.stones[1 - colour], self.geometry.full
        reached_by_other = self.geometry.flood(other, full & ~own)
        return self.geometry.flood(own, full & ~other) & ~reached_by_other

    def score(self, komi: float) -> float:
        """Black's points less White's and less `komi`."""
        return self.area(BLACK).bit_count() - self.area(WHITE).bit_count() - komi

    def _after(self, own: int, other: int) -> int:
        black, white = (own, other) if self.turn == BLACK else (other, own)
        return black | white << self.geometry.pass_move

    def _place(self, move: int, colour: int) -> int:
        """Put the stone, join its chains, take its point from the liberties around; the stones left without any."""
        bit = 1 << move
        chain, stones_of, liberties_of = self._chain, self._members, self._liberties
        self.stones[colour] |= bit
        own = self.stones[colour]
        joined, liberties = bit, self.geometry.adjacent_mask[move] & ~(own | self.stones[1 - colour])
        head, largest, captured = move, 0, 0
        for point in self.geometry.adjacent[move]:
            neighbour = chain[point]
            if neighbour < 0:
                continue
            if own >> point & 1:
                found = stones_of[neighbour]
                joined |= found
                liberties |= liberties_of[neighbour]
                if found.bit_count() > largest:
                    head, largest = neighbour, found.bit_count()
            else:
                liberties_of[neighbour] &= ~bit
                if not liberties_of[neighbour]:
                    captured |= stones_of[neighbour]
        for point in members(joined & ~stones_of[head] if largest else joined):
            chain[point] = head
        stones_of[head], liberties_of[head] = joined, liberties & ~bit
        return captured

    def _remove(self, captured: int, colour: int) -> None:
        """Take stones off the board; their points are liberties of the chains of `colour` around."""
        self.stones[1 - colour] ^= captured
        for point in members(captured):
            self._chain[point] = -1
        beside = self.geometry.neighbours(captured) & self.stones[colour]
        while beside:
            head = self._chain[(beside & -beside).bit_length() - 1]
            self._liberties[head] |= self.geometry.neighbours(self._members[head]) & captured
            beside &= ~self._members[head]
