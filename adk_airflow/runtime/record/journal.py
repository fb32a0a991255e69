"""What of an earlier try is answered instead of done again, and what of this one is kept for the next.

An entry has a *place*: the line it belongs to and its position there. A line is one conversation, of an agent in a node run, or
the run of a node. It has a *fingerprint* of what was asked. A call is answered from the entry of its place if that has the same
fingerprint. From the first other one of a line on, that line runs live and its later entries are dropped; others keep theirs.

A try that failed keeps its entries, too, so that another one repeats only what failed. But an answer of the model that made it
fail is dropped: at once where the failure came right after it, and else when the same failure comes a second time, unless the
model did not answer at all.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adk_airflow.runtime.record.paths import is_below, node_of

if TYPE_CHECKING:
    from adk_airflow.runtime.record.attempt import Attempt
    from adk_airflow.runtime.record.store import JournalStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kept:
    """An entry of an earlier try, or of this one.

    Attributes:
        order: Its number among all entries.
        line: The line it belongs to.
        place: Its place, unique.
        fingerprint: Of what was asked.
        kind: ``model``, ``tool``, ``node``, ``artifact`` or ``session``.
        data: What was answered, as JSON data.
        attempt: The try that made it.
    """

    order: int
    line: str
    place: str
    fingerprint: str
    kind: str
    data: Mapping[str, Any]
    attempt: int


class Journal:
    """The journal of one try.

    Args:
        attempt: The try.
        store: Where entries are kept; None: nowhere.
        durable: What is finished is kept; else only what was spent.
        afresh: The nodes of which nothing is kept, by their path in the workflow (``triage``, ``inner/triage``).

    Attributes:
        durable: What is finished is kept.
        replays: How much was answered, by kind.
        spent: What earlier tries spent, as ``spend`` was told.
    """

    def __init__(
        self, attempt: Attempt, store: JournalStore | None, *, durable: bool = True, afresh: Collection[str] = ()
    ) -> None:
        self.attempt = attempt
        self._store = store
        self.durable = durable and store is not None
        self._afresh = tuple(afresh)
        self._kept: dict[str, Kept] = {}
        self._live: set[str] = set()
        self._order = 0
        self._last_of_line: dict[str, Kept] = {}
        self._failures: list[tuple[str, str]] = []
        self._begun: set[str] = set()
        self.replays: Counter[str] = Counter()
        self.spent: list[Mapping[str, Any]] = []
        if store is not None:
            for entry in sorted(filter(None, map(_read, store.read())), key=lambda entry: (entry["t"], entry["n"])):
                self._take(entry)

    # -- what is there -----------------------------------------------------------------------------------

    def keeps(self, line: str) -> bool:
        """Whether anything is kept of a line."""
        if not self.durable or not self._afresh:
            return self.durable
        node = node_of(line.partition("|")[0])
        return not any(is_below(node, path) for path in self._afresh)

    @property
    def going_on(self) -> bool:
        """Whether an earlier try left something."""
        return bool(self._kept)

    def kept(self, kind: str) -> list[Kept]:
        """The entries of a kind that earlier tries left, in order."""
        return [kept for kept in self._kept.values() if kept.kind == kind and kept.attempt != self.attempt.number]

    def find(self, kind: str, line: str, place: str, fingerprint: str) -> Kept | None:
        """The entry that answers this, or None: then it is done live.

        Args:
            kind: As of ``Kept``, as the others.
            line: See there.
            place: See there.
            fingerprint: See there.
        """
        kept = self._kept.get(place)
        if (
            kept is None
            or line in self._live
            or not self.keeps(line)
            or kept.attempt == self.attempt.number
            or kept.kind != kind
        ):
            return None
        if kept.fingerprint != fingerprint:
            self._diverge(kept)
            return None
        self.replays[kind] += 1
        self._last_of_line[line] = kept
        return kept

    def run_live(self, line: str) -> None:
        """Nothing more of a line, or of the lines below it, is answered from the journal."""
        self._live.add(line)

    def _diverge(self, kept: Kept) -> None:
        _log.info(
            "%s: what is asked differs from what try %d asked, so it is asked anew, and all that follows there",
            kept.place, kept.attempt,
        )  # fmt: skip
        self._live.add(kept.line)
        around = kept.line.rpartition("/")[0] if kept.kind == "node" else kept.line
        for place, other in list(self._kept.items()):
            if other.order >= kept.order and other.attempt != self.attempt.number and _is_below(other.line, around):
                del self._kept[place]

    # -- what is added -----------------------------------------------------------------------------------

    def add(self, kind: str, line: str, place: str, fingerprint: str, data: Mapping[str, Any], *, paid: bool = True) -> None:
        """Keeps what was answered.

        Args:
            kind: As of ``Kept``, as the others.
            line: See there.
            place: See there.
            fingerprint: See there.
            data: See there.
            paid: It is worth a write of its own; else it is kept with others within half a second.
        """
        if not self.keeps(line):
            return
        kept = Kept(self._order, line, place, fingerprint, kind, data, self.attempt.number)
        self._write({"k": kind, "l": line, "p": place, "f": fingerprint, "d": data}, paid=paid)
        self._kept[place] = self._last_of_line[line] = kept

    def begin(self, place: str) -> None:
        """Notes that something began whose end may never be known."""
        if self.durable:
            self._write({"k": "begun", "p": place}, paid=False)

    def spend(self, data: Mapping[str, Any]) -> None:
        """Notes what a call cost, whatever becomes of its answer: the next try finds it in ``spent``."""
        if self._store is not None:
            self._write({"k": "spent", "d": data}, paid=False)

    def began_before(self, place: str) -> bool:
        """Whether an earlier try began this, and nothing tells how it ended."""
        return place in self._begun

    def failed(self, path: str, error: BaseException, *, call_failed: str) -> None:
        """Notes how the try failed, and drops the answer of the model that a next try shall not be given again.

        Args:
            path: Path of the node run that failed.
            error: What it failed with.
            call_failed: Whether a call of a ``"model"`` or a ``"tool"`` failed; empty: what came of an answer.
        """
        if not self.durable:
            return
        failure = (path, type(error).__name__)
        culprit, everywhere = None, False
        if not call_failed:
            ended = [kept for line, kept in self._last_of_line.items() if line == path or line.startswith(f"{path}|")]
            last = max(ended, key=lambda kept: kept.order, default=None)
            culprit = last if last is not None and last.kind == "model" else None
        if culprit is None and call_failed != "model" and self._failures and self._failures[-1] == failure:
            models = [kept for kept in self._kept.values() if kept.kind == "model"]
            culprit, everywhere = max(models, key=lambda kept: kept.order, default=None), True
        self._write({"k": "failed", "p": path, "e": failure[1]}, paid=False)
        if culprit is not None:
            _log.info("A next try asks the model anew at %s, since this one failed with what it had answered", culprit.place)
            later = [kept for kept in self._kept.values() if kept.order >= culprit.order]
            dropped = [kept.place for kept in later if everywhere or kept.line == culprit.line]
            self._write({"k": "drop", "p": dropped}, paid=False)

    def _write(self, entry: dict[str, Any], *, paid: bool) -> None:
        assert self._store is not None
        self._store.append(json.dumps({"n": self._order, "t": self.attempt.number, **entry}), now=paid)
        self._order += 1

    def _take(self, entry: dict[str, Any]) -> None:
        kind = entry["k"]
        if kind == "drop":
            for place in entry["p"]:
                self._kept.pop(place, None)
        elif kind == "begun":
            self._begun.add(entry["p"])
        elif kind == "spent":
            self.spent.append(entry["d"])
        elif kind == "failed":
            self._failures.append((entry["p"], entry["e"]))
        else:
            kept = Kept(entry["n"], entry["l"], entry["p"], entry["f"], kind, entry["d"], entry["t"])
            self._kept[kept.place] = kept
        self._order = max(self._order, entry["n"] + 1)


_SHAPES: dict[str, dict[str, type]] = {
    "drop": {"p": list},
    "begun": {"p": str},
    "spent": {"d": dict},
    "failed": {"p": str, "e": str},
    **{kind: {"l": str, "p": str, "f": str, "d": dict} for kind in ("model", "tool", "node", "artifact", "session")},
}


def _read(line: str) -> dict[str, Any] | None:
    """An entry of an earlier try; of one that is damaged nothing: it is as if it had not been made."""
    try:
        entry = json.loads(line)
        shape = {"n": int, "t": int, **_SHAPES[entry["k"]]}
        wrong = [key for key, kind in shape.items() if type(entry[key]) is not kind]
        if wrong or not all(isinstance(place, str) for place in (entry["p"] if entry["k"] == "drop" else ())):
            raise TypeError(", ".join(wrong))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        _log.warning("An entry of an earlier try is damaged (%s), so what it answers is done again", type(error).__name__)
        return None
    found: dict[str, Any] = entry
    return found


def fingerprint(data: Any) -> str:
    """A short text that is the same for the same JSON data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _is_below(line: str, around: str) -> bool:
    return line == around or line.startswith((f"{around}/", f"{around}|", f"{around}>")) or not around


def top_level(entries: Sequence[Kept]) -> list[Kept]:
    """Of finished node runs those that lie in no other finished one."""
    lines = {kept.line for kept in entries}
    return [kept for kept in entries if not any(above in lines for above in _above(kept.line))]


def _above(line: str) -> Iterable[str]:
    while "/" in line:
        line = line.rpartition("/")[0]
        yield line
