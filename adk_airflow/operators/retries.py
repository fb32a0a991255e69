"""When Airflow tries an ADK task again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import RetryAction, RetryDecision, RetryPolicy

from adk_airflow.runtime.failures import is_permanent

if TYPE_CHECKING:
    from airflow.sdk import Context


class FailAtOnce(RetryPolicy):
    """Airflow's retries for what another try can mend: a permanent error fails the task at once.

    Args:
        own: The policy that the user gave. What it decides counts; this one decides where that leaves it to the defaults.
    """

    def __init__(self, own: RetryPolicy | None = None) -> None:
        self.own = own

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Fails, or leaves it to ``retries``."""
        if self.own is not None:
            decision = self.own.evaluate(exception, try_number, max_tries, context)
            if decision.action is not RetryAction.DEFAULT:
                return decision
        if not is_permanent(exception):
            return RetryDecision.default()
        return RetryDecision.fail(f"{type(exception).__name__}: the same would happen again, so there is no other try.")
