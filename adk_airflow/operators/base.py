"""What all operators share: each is a step whose life is in ``runtime.task``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from adk_airflow.errors import ValueNotTransferableError
from adk_airflow.operators.retries import TaskRetries
from adk_airflow.runtime.record import budget
from adk_airflow.runtime.task import Task, live, materialized

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

    from adk_airflow.runtime.adk.runner import RunResult
    from adk_airflow.runtime.inbox import Inbox
    from adk_airflow.runtime.source import Source
    from adk_airflow.runtime.start import Start
    from adk_airflow.runtime.wire.envelope import Envelope


class AdkOperator(BaseOperator):
    """Base of the operators that run something in ADK.

    Args:
        llm_conn_id: Airflow connection whose credentials the agents of this task use; a dict gives one by node path or agent
            name, ``""`` for the others. Templated. None: ``[adk_airflow] llm_conn_id``, or else what the process has.
        durable: What a try has finished (calls of models and tools, node runs, artifacts) is not done again by the next one.
            False: each try does everything afresh. A dict says so of nodes, by path.
        max_llm_calls: So many calls of models at most, 1 or more, all tries counted; the next one is a
            ``BudgetExceededError``. None: no limit, besides ADK's own ``RunConfig.max_llm_calls``.
        max_tokens: So many tokens, input and output: no model is asked any more when they are spent. None: no limit.
        max_cost: So much money, by ``[adk_airflow] prices``: likewise. None: no limit.
    """

    template_fields: Sequence[str] = ("llm_conn_id",)
    ui_color = "#e8f0fe"
    has_nodes = False
    """Whether nodes of a workflow run in it, which may have limits of their own: dicts by path."""
    custom_operator_name = "ADK"

    def __init__(
        self,
        *,
        llm_conn_id: str | dict[str, str] | None = None,
        durable: bool | dict[str, bool] = True,
        max_llm_calls: int | Mapping[str, int] | None = None,
        max_tokens: int | Mapping[str, int] | None = None,
        max_cost: float | Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        limits = {"max_llm_calls": max_llm_calls, "max_tokens": max_tokens, "max_cost": max_cost}
        budget.check(f"task {self.task_id!r}", limits, nodes=None if self.has_nodes else ())
        self.max_llm_calls, self.max_tokens, self.max_cost = max_llm_calls, max_tokens, max_cost
        self.retry_policy = TaskRetries(self.retry_policy)
        self._task: Task | None = None
        self.ends_run = False
        self.llm_conn_id = llm_conn_id
        self.durable = durable
        if llm_conn_id is None:
            self._show_no_template("llm_conn_id")

    def _show_no_template(self, *fields: str) -> None:
        """Leaves fields out of what is rendered, and shown under Rendered Templates, because there is nothing in them."""
        self.template_fields = tuple(field for field in self.template_fields if field not in fields)

    def execute(self, context: Any) -> Any:
        """Returns the plain output; XCom ``adk`` holds the envelope."""
        output = live(self, context, self._remember)
        if output is None and self.do_xcom_push and context["ti"].map_index >= 0:
            # Airflow leaves None out, which would move the others in the list of a mapped task's outputs.
            context["ti"].xcom_push(key="return_value", value=None)
        return output

    def _remember(self, task: Task | None) -> None:
        self._task = task
        if task is not None:
            # Once Airflow has the success: a result that does not reach it is sent by another try, which finds what was paid.
            self.on_success_callback = [*self.on_success_callback, task.forget]

    def on_kill(self) -> None:
        """Cancels what runs in ADK."""
        if self._task is not None:
            self._task.cancel()

    @property
    def shares(self) -> Mapping[str, tuple[str, ...]]:
        """By the path of a node, the ids of the tasks that spend its budget, too: none."""
        return {}

    # -- what an operator says of itself ------------------------------------------------------------------

    def load(self) -> Source:
        """Imports what the task runs, and google-adk with it."""
        raise NotImplementedError

    def name_of(self, source: Source) -> str:
        """The name of the node, the agent or the tool."""
        raise NotImplementedError

    def where(self, source: Source) -> str:
        """How errors and log lines name what runs in this task."""
        raise NotImplementedError

    def nodes_of(self, source: Source) -> Sequence[BaseNode]:
        """The nodes of a workflow that run in this task, of which others run in other tasks: none, without a graph."""
        return ()

    def receive(self, task: Task) -> Inbox:
        """Reads what reached this task."""
        raise NotImplementedError

    def run(self, task: Task) -> RunResult:
        """Lets ADK run it."""
        raise NotImplementedError

    def plain_output(self, task: Task, envelope: Envelope) -> Any:
        """What people and other tasks see as this task's ``return_value``; None for no output."""
        return task.last_plain_output(envelope, task.name)

    def skip_untriggered(self, task: Task, envelope: Envelope, output: Any) -> None:
        """Has Airflow skip what this task alone could have triggered and did not: nothing, without a place in a graph."""


class AdkStartOperator(AdkOperator):
    """Base of the operators that the run itself gives something.

    Args:
        state: The initial session state. None: the run's params but ``input``. Templated.
    """

    template_fields: Sequence[str] = ("state", *AdkOperator.template_fields)

    def __init__(self, *, state: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Decided here: what an upstream task gives may be None too.
        self._state_of_params = state is None
        self.state = state

    def given_input(self, context: Mapping[str, Any]) -> Any:
        """The user's input, as it was given."""
        raise NotImplementedError

    def receive(self, task: Task) -> Inbox:
        """What the run gives."""
        from adk_airflow.runtime.inbox import merge

        return merge([], self.start(task))

    def start(self, task: Task) -> Start:
        """What the run gives to this task.

        Raises:
            ValueNotTransferableError: The input or a state value has no JSON form.
        """
        from adk_airflow.runtime.airflow_state import initial_state, run_state
        from adk_airflow.runtime.start import Start

        if self._state_of_params:
            state = initial_state(task.context)
        else:
            given = {key: materialized(value) for key, value in (self.state or {}).items()}
            state = {**given, **run_state(task.context)}
        try:
            return Start.of(self.given_input(task.context), state)
        except ValueNotTransferableError as error:
            raise ValueNotTransferableError(f"{task.where}: what the run gives it: {error}") from None


class AdkInputOperator(AdkStartOperator):
    """Base of the operators that take the user's input.

    Args:
        input: The user's input: text or JSON data. None: the run's ``params["input"]``. Templated.
    """

    template_fields: Sequence[str] = ("input", *AdkStartOperator.template_fields)

    def __init__(self, *, input: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._input_of_params = input is None
        self.input = input

    def given_input(self, context: Mapping[str, Any]) -> Any:
        """The input, or the run's param."""
        return context["params"].get("input") if self._input_of_params else materialized(self.input)
