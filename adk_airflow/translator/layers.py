"""Places boxes in layers from left to right, so that arrows lead to the right and cross seldom: geometry only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

ROW_GAP = 18.0
SWEEPS = 12

Point = tuple[float, float]
Edge = tuple[str, str]
# A box of the drawing, or (source, target, layer): the place where a long arrow passes a layer between its ends.
_Slot = str | tuple[str, str, int]


@dataclass(frozen=True)
class Layout:
    """Where everything is, in pixels.

    Attributes:
        boxes: The top left corner of each box.
        routes: The points of each arrow, from the right side of its source to the left side of its target: it bends between
            columns, and runs level across them.
        width: Of the whole.
        height: Of the whole.
    """

    boxes: Mapping[str, Point]
    routes: Mapping[Edge, tuple[Point, ...]]
    width: float
    height: float


def arrange(sizes: Mapping[str, tuple[float, float]], edges: Mapping[Edge, float]) -> Layout:
    """Places boxes.

    Args:
        sizes: Width and height of each box.
        edges: The arrows, without circles, each with the room that it needs between two columns.
    """
    layer_of = _layers(sizes, edges)
    layers: list[list[_Slot]] = [[] for _ in range(max(layer_of.values(), default=0) + 1)]
    for name in sizes:
        layers[layer_of[name]].append(name)
    steps: list[tuple[_Slot, _Slot]] = []
    for source, target in edges:
        passed: list[_Slot] = []
        for layer in range(layer_of[source] + 1, layer_of[target]):
            passed.append((source, target, layer))
            layers[layer].append(passed[-1])
        steps += zip([source, *passed], [*passed, target], strict=True)
    before, after = _neighbours(steps)
    layers = _order(layers, before, after)
    heights = {slot: sizes[slot][1] if isinstance(slot, str) else 0.0 for layer in layers for slot in layer}
    centers = _centers(layers, heights, before, after)
    room = [0.0] * len(layers)
    for (source, _), needed in edges.items():
        room[layer_of[source]] = max(room[layer_of[source]], needed)
    columns = _columns(layers, sizes, room)
    boxes = {name: (columns[layer_of[name]][0], centers[name] - sizes[name][1] / 2) for name in sizes}
    routes = {}
    for source, target in edges:
        start, end = centers[source], centers[target]
        points = [(boxes[source][0] + sizes[source][0], start), (columns[layer_of[source]][1], start)]
        for layer in range(layer_of[source] + 1, layer_of[target]):
            y = centers[(source, target, layer)]
            points += [(columns[layer][0], y), (columns[layer][1], y)]
        routes[(source, target)] = (*points, (boxes[target][0], end))
    height = max((centers[slot] + heights[slot] / 2 for slot in centers), default=0.0)
    return Layout(boxes, routes, columns[-1][1], height)


def _layers(names: Collection[str], edges: Collection[Edge]) -> dict[str, int]:
    """Each box one layer after the last of those before it."""
    before: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        before[target].append(source)
    found: dict[str, int] = {}
    for name in TopologicalSorter(before).static_order():
        found[name] = max((found[source] + 1 for source in before[name]), default=0)
    return found


def _neighbours(steps: Collection[tuple[_Slot, _Slot]]) -> tuple[dict[_Slot, list[_Slot]], dict[_Slot, list[_Slot]]]:
    before: dict[_Slot, list[_Slot]] = {}
    after: dict[_Slot, list[_Slot]] = {}
    for source, target in steps:
        before.setdefault(target, []).append(source)
        after.setdefault(source, []).append(target)
    return before, after


def _order(
    layers: list[list[_Slot]], before: Mapping[_Slot, list[_Slot]], after: Mapping[_Slot, list[_Slot]]
) -> list[list[_Slot]]:
    """Puts each box beside the middle of its neighbours, forth and back, and keeps the order with the fewest crossings."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers, after)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forth = sweep % 2 == 0
        place: dict[_Slot, float] = {}
        for layer in layers if forth else reversed(layers):
            if place:
                now = {slot: number for number, slot in enumerate(layer)}
                wanted = {slot: _mean(place, (before if forth else after).get(slot, []), now[slot]) for slot in layer}
                layer.sort(key=wanted.__getitem__)
            place.update({slot: float(number) for number, slot in enumerate(layer)})
        crossings = _crossings(layers, after)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _crossings(layers: list[list[_Slot]], after: Mapping[_Slot, list[_Slot]]) -> int:
    total = 0
    for layer, following in pairwise(layers):
        place = {slot: number for number, slot in enumerate(following)}
        ends: list[int] = []
        for slot in layer:
            own = [place[target] for target in after.get(slot, [])]
            total += sum(end > mine for mine in own for end in ends)
            ends += own
    return total


def _mean(place: Mapping[_Slot, float], neighbours: Collection[_Slot], otherwise: float) -> float:
    return sum(place[slot] for slot in neighbours) / len(neighbours) if neighbours else otherwise


def _centers(
    layers: list[list[_Slot]],
    heights: Mapping[_Slot, float],
    before: Mapping[_Slot, list[_Slot]],
    after: Mapping[_Slot, list[_Slot]],
) -> dict[_Slot, float]:
    """The height of each box's middle: level with its neighbours where the order in its layer allows it."""
    centers: dict[_Slot, float] = {}
    for layer in layers:
        centers.update(_spread(layer, heights, {slot: _mean(centers, before.get(slot, []), 0.0) for slot in layer}))
    for sweep in range(SWEEPS):
        near = (after, before)[sweep % 2]
        for layer in reversed(layers) if near is after else layers:
            centers.update(_spread(layer, heights, {s: _mean(centers, near.get(s, []), centers[s]) for s in layer}))
    top = min(centers[slot] - heights[slot] / 2 for slot in centers)
    return {slot: center - top for slot, center in centers.items()}


def _spread(layer: list[_Slot], heights: Mapping[_Slot, float], wanted: Mapping[_Slot, float]) -> dict[_Slot, float]:
    """The centers nearest to ``wanted`` that keep the order and a gap: boxes pushed together move as one block."""
    offset, offsets, blocks = 0.0, [], list[tuple[float, int]]()
    for number, slot in enumerate(layer):
        if number:
            offset += (heights[layer[number - 1]] + heights[slot]) / 2 + ROW_GAP
        offsets.append(offset)
        block = (wanted[slot] - offset, 1)
        while blocks and blocks[-1][0] > block[0]:
            value, count = blocks.pop()
            block = ((value * count + block[0] * block[1]) / (count + block[1]), count + block[1])
        blocks.append(block)
    values = [value for value, count in blocks for _ in range(count)]
    return {slot: value + own for slot, value, own in zip(layer, values, offsets, strict=True)}


def _columns(
    layers: list[list[_Slot]], sizes: Mapping[str, tuple[float, float]], room: Sequence[float]
) -> list[tuple[float, float]]:
    """The left and right side of each layer."""
    columns, left = [], 0.0
    for layer, gap in zip(layers, room, strict=True):
        width = max((sizes[slot][0] for slot in layer if isinstance(slot, str)), default=0.0)
        columns.append((left, left + width))
        left += width + gap
    return columns
