"""When Airflow tries an ADK task again, and how long it waits until then."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryAction, RetryDecision, RetryPolicy

from adk_airflow.runtime import failures
from adk_airflow.runtime.error_kinds import Finding, Kind, kind_of

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

XCOM_KEY = "adk_retry"
_FIRST_DELAY = timedelta(seconds=30)
_LONGEST_REASON = 500  # characters that Airflow keeps of it


@dataclass(frozen=True, kw_only=True)
class AdkRetryPolicy(RetryPolicy):
    """Airflow's retries for the errors of models and tools, by what kind of error it is.

    * An answer that refuses the request (400, 401, 403, 404, ...), and what is not there, fails the task at once, whatever its
      ``retries``.
    * 429, 503, 529 and other answers that say when to come again wait as long as the server says.
    * Without that, they and time-outs, connections that fail or break, and errors of the server (5xx) back off: ``base_delay``,
      twice that, four times, ..., each by chance up to half as long again, at most ``max_delay``.
    * Every other error is left to the task's ``retries`` and ``retry_delay``.

    Numbers are seconds.

    Attributes:
        base_delay: The first delay of the back-off. None: the task's ``retry_delay`` where that is not Airflow's default, else
            30 seconds.
        max_delay: The longest delay of the back-off. A task's ``max_retry_delay`` that is shorter counts instead; a
            ``retry_delay`` of its own is never cut.
        max_server_delay: The longest delay that a server may ask for. One that asks for more is asked again after that, and the
            reason says so.

    Raises:
        ValueError: A delay is below 0, or the longest below the first.
        TypeError: A delay is neither a timedelta nor a number.
    """

    base_delay: timedelta | float | None = None
    max_delay: timedelta | float = timedelta(minutes=10)
    max_server_delay: timedelta | float = timedelta(hours=24)

    def __post_init__(self) -> None:
        for name in ("base_delay", "max_delay", "max_server_delay"):
            value = getattr(self, name)
            if name == "base_delay" and value is None:
                continue
            object.__setattr__(self, name, _timedelta(name, value))
        if self.base_delay is not None and self.base_delay > self.max_delay:  # type: ignore[operator]
            raise ValueError(f"AdkRetryPolicy: base_delay ({self.base_delay}) is longer than max_delay ({self.max_delay})")

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Fails, waits as long as the server says, backs off, or leaves it to the task's own settings."""
        found = kind_of(exception)
        if found.kind is Kind.UNKNOWN:
            return RetryDecision.default()
        if found.kind is Kind.REFUSED:
            return RetryDecision.fail(_reason(found, "another try would end the same way, so there is none"))
        if try_number > max_tries:
            tried = f"all {try_number} tries are used up" if max_tries else "the task has no retries"
            asked = f" (the server asks to wait {_words(found.wait)})" if found.wait else ""
            return RetryDecision(reason=_reason(found, f"another try may help{asked}, but {tried}"))
        if found.wait is None:
            seconds = self._back_off(try_number, max_tries, context)
            return _retry(seconds, _reason(found, f"the next try is in {_words(seconds)} (back-off)"))
        most = _seconds(self.max_server_delay)
        said = f"in {_words(found.wait)}, as the server asks"
        if found.wait > most:
            said = f"in {_words(most)}, the longest (max_server_delay), though the server asks to wait {_words(found.wait)}"
        return _retry(min(found.wait, most), _reason(found, f"the next try is {said}"))

    def _back_off(self, try_number: int, max_tries: int, context: Context | None) -> float:
        task: Any = (context or {}).get("task")
        base = _seconds(_FIRST_DELAY if self.base_delay is None else self.base_delay)
        longest = _seconds(self.max_delay)
        failed = try_number
        if task is not None:
            failed -= max_tries - (task.retries or 0)  # tries before a clear do not count
            if task.max_retry_delay is not None:
                longest = min(longest, _seconds(task.max_retry_delay))
            if self.base_delay is None and (own := _own_delay(task)) is not None:
                base, longest = own, max(longest, own)
        whole = min(1.5 * base * 2.0 ** min(max(failed, 1) - 1, 30), longest)
        return random.uniform(whole / 1.5, whole)


class TaskRetries(RetryPolicy):
    """The retry policy of every ADK task: the user's decides, then ``AdkRetryPolicy``. The task's XCom says what came of it.

    Airflow logs the reason, and keeps that of a retry in its database, where no page of Airflow 3.3 shows it. So the XCom
    ``adk_retry`` does, until the next try:
    ``{"action": "retry" or "fail", "delay_seconds": 7.0 or null, "reason": text}``.

    Args:
        own: The policy that the user gave. What it decides counts; where it leaves it to the defaults, AdkRetryPolicy decides.
    """

    def __init__(self, own: RetryPolicy | None = None) -> None:
        self.own = own

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """The first decision of the two policies that is one."""
        decision = RetryDecision.default()
        for policy in (self.own, AdkRetryPolicy()):
            if decision.action is RetryAction.DEFAULT and policy is not None:
                decision = _decision(policy, exception, try_number, max_tries, context)
        ti: Any = (context or {}).get("ti")
        if ti is not None and (decision.reason or decision.action is not RetryAction.DEFAULT):
            _show(ti, decision, again=decision.action is not RetryAction.FAIL and try_number <= max_tries)
        return decision


def _decision(policy: RetryPolicy, exception: BaseException, *arguments: Any) -> RetryDecision:
    """What a policy decides; a policy that fails decides nothing."""
    try:
        return policy.evaluate(exception, *arguments)
    except Exception as error:
        log.warning("The retry policy %s failed, and is passed over: %s", type(policy).__name__, failures.one_line(error))
        return RetryDecision.default()


def _show(ti: Any, decision: RetryDecision, *, again: bool) -> None:
    delay = decision.retry_delay.total_seconds() if again and decision.retry_delay is not None else None
    value = {"action": "retry" if again else "fail", "delay_seconds": delay, "reason": failures.masked(decision.reason or "")}
    try:
        ti.xcom_push(key=XCOM_KEY, value=value)
    except Exception as error:  # what was decided counts, also where it cannot be shown
        log.warning("The reason of the retry is not in XCom %r: %s", XCOM_KEY, failures.one_line(error))


def _retry(seconds: float, reason: str) -> RetryDecision:
    return RetryDecision.retry(timedelta(seconds=round(seconds, 3)), reason)


def _reason(found: Finding, so: str) -> str:
    """What the error is, what follows, and its own words."""
    message = getattr(found.error, "message", None)
    lines = (message if isinstance(message, str) else str(found.error)).strip().splitlines()
    said = f"{type(found.error).__name__}: {lines[0]}" if lines else type(found.error).__name__
    return failures.masked(f"{found.what}; {so}. {said}")[:_LONGEST_REASON]


def _own_delay(task: Any) -> float | None:
    """The delay that was given for the task, in seconds; None where it is Airflow's default."""
    from airflow.sdk import conf

    given = _seconds(task.retry_delay)
    return None if given == conf.getint("core", "default_task_retry_delay", fallback=300) else given


def _timedelta(name: str, value: Any) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, (timedelta, int, float)):
        raise TypeError(f"AdkRetryPolicy: {name} is a timedelta or a number of seconds, not {value!r}")
    try:
        delay = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (ValueError, OverflowError):  # nan, infinity
        raise ValueError(f"AdkRetryPolicy: {name} is {value!r}, which is no number of seconds") from None
    if delay < timedelta(0):
        raise ValueError(f"AdkRetryPolicy: {name} is {value!r}, but no delay is below 0")
    return delay


def _seconds(delay: timedelta | float) -> float:
    return delay.total_seconds() if isinstance(delay, timedelta) else float(delay)


def _words(seconds: float | None) -> str:
    """A length of time for people: ``7 s``, ``3 min``, ``2.5 h``."""
    seconds = seconds or 0.0
    if seconds < 120:
        return f"{round(seconds, 1):g} s"
    return f"{round(seconds / 60, 1):g} min" if seconds < 7200 else f"{round(seconds / 3600, 1):g} h"
