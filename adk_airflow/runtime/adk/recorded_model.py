"""A model whose calls are recorded, in the place of the one that an agent has."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from google.adk.models.base_llm import BaseLlm

from adk_airflow.runtime.adk.stand_in import class_below, in_place_of

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

    from adk_airflow.runtime.adk.recorder import Recorder

_RECORDER = "_adk_airflow_recorder"


def recorded(model: BaseLlm, recorder: Recorder) -> BaseLlm:
    """The model as it is, of its own class and with its own fields, whose calls the recorder sees.

    Args:
        model: The model.
        recorder: The recorder.
    """
    made: BaseLlm = in_place_of(model, _recorded_class(type(model)), _RECORDER, recorder)
    return made


@functools.cache
def _recorded_class(cls: type[BaseLlm]) -> Any:
    async def generate_content_async(
        self: Any, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        generate = functools.partial(cls.generate_content_async, self)
        recorder: Recorder | None = getattr(self, _RECORDER, None)
        asked = recorder.ask(self, generate, llm_request, stream) if recorder else generate(llm_request, stream=stream)
        async for answer in asked:
            yield answer

    return class_below(cls, __slots__=(_RECORDER,), generate_content_async=generate_content_async)
