"""A model whose calls are recorded, in the place of the one that an agent has."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from google.adk.models.base_llm import BaseLlm

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
    cls = _recorded_class(type(model))
    made: BaseLlm = cls.__new__(cls)
    # What the model notes in itself shall be in the model, not in a copy of it.
    for name in ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__"):
        object.__setattr__(made, name, getattr(model, name))
    object.__setattr__(made, _RECORDER, recorder)
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

    looks = {name: getattr(cls, name) for name in ("__doc__", "__module__", "__qualname__")}
    return type(cls.__name__, (cls,), {**looks, "__slots__": (_RECORDER,), "generate_content_async": generate_content_async})
