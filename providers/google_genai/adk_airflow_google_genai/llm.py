"""An agent's model with a connection's credentials: ADK's own Gemini class, with one error where Google refuses them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar

from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.registry import LLMRegistry
from google.genai import types
from pydantic import PrivateAttr

from adk_airflow_google_genai.account import VERTEX, Account, read_account
from adk_airflow_google_genai.errors import GoogleGenAIConnectionError, is_timeout

if TYPE_CHECKING:
    from airflow.sdk import Connection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

# Arguments of google.genai.Client that say whose the requests are; a model's own ones give way to the connection's.
_CREDENTIALS = ("api_key", "credentials", "enterprise", "project", "vertexai")


def make_llm(model: str | BaseLlm, connection: Connection) -> BaseLlm:
    """The model with the credentials of a connection; entry point of the group ``adk_airflow.llm``.

    Args:
        model: A model name that ADK takes for Gemini, such as ``gemini-2.5-flash``, or a ``Gemini`` object. The object is not
            changed; what is made of it keeps its fields (retry options, headers, API version), but neither its
            credentials nor a client of its own. Its ``location`` stays, where it is one for Vertex AI.
        connection: Of type ``google_genai`` or ``google_genai_vertex``, as read already: nothing is read or sent here.

    Returns:
        An object of a subclass of the model's own class. It shares nothing with other connections' ones.

    Raises:
        GoogleGenAIConnectionError: The connection lacks something, or the model is not one for it.
    """
    account = read_account(connection)
    llm = LLMRegistry.new_llm(model) if isinstance(model, str) else model
    if not isinstance(llm, Gemini) or _brings_its_own_service(llm):
        raise GoogleGenAIConnectionError(
            account.conn_id,
            f"it is for Gemini models, but model {llm.model!r} is run by {type(llm).__name__}. Give that agent another"
            " llm_conn_id, or none.",
        )
    if not account.vertex and llm.model.startswith("projects/"):
        raise GoogleGenAIConnectionError(
            account.conn_id, f"the Gemini API does not serve {llm.model!r}. Use a connection of type {VERTEX!r}."
        )
    return _connected(llm, account)


class ConnectedGemini(Gemini):
    """Gemini with the credentials of one Airflow connection. Made by ``make_llm`` only."""

    _account: Account = PrivateAttr()

    # ADK's own again, for classes that pin a client by overriding it: the connection is what counts.
    api_client: ClassVar[Any] = getattr_static(Gemini, "api_client")

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        """As ADK's.

        Raises:
            GoogleGenAIConnectionError: Google refuses the connection's credentials. Other errors are google-genai's own,
                without the key where their words quote it; one of a request that took too long names model and limit.
        """
        refusal = None
        try:
            async with aclosing(super().generate_content_async(llm_request, stream)) as responses:
                async for response in responses:
                    yield response
        except Exception as error:
            refusal = self._account.refusal(error)
            if refusal is None:
                if is_timeout(error):
                    error.args = (self._timeout_words(llm_request, str(error)),)
                raise
        if refusal is not None:
            raise refusal

    def _timeout_words(self, request: LlmRequest, said: str) -> str:
        """What an error that mostly says nothing should say; its class stays, and with it what ``retry_config`` makes of it."""
        own = types.HttpOptions.model_validate((self.client_kwargs or {}).get("http_options") or {})
        of_request = request.config.http_options if request.config else None
        limit = (of_request.timeout if of_request else None) or own.timeout
        within = f" within {limit / 1000:g} s" if limit else " in time"
        return (
            f"Connection {self._account.conn_id!r}: model {request.model or self.model!r} gave no answer{within}"
            f"{f' ({said})' if said else ''}. Give it longer (timeout of http_options, in milliseconds), ask for less, or let"
            " the node's retry_config ask again."
        )


@cache
def _connected_class(cls: type[Gemini]) -> type[ConnectedGemini]:
    """The class below which the model's own behaviour is kept: a subclass of both."""
    if cls is Gemini:
        return ConnectedGemini
    return type(f"Connected{cls.__name__}", (ConnectedGemini, cls), {"__doc__": cls.__doc__, "__module__": __name__})


def _connected(llm: Gemini, account: Account) -> ConnectedGemini:
    """A copy of the fields and private attributes alone: what the model has cached holds other credentials."""
    cls = _connected_class(type(llm))
    state = llm.__getstate__()
    fields = {name: value for name, value in state["__dict__"].items() if name in cls.model_fields}
    fields |= {"client": None, "client_kwargs": _client_kwargs(llm, account), "base_url": account.base_url or llm.base_url}
    connected = cls.__new__(cls)
    private = {**(state["__pydantic_private__"] or {}), "_account": account}
    connected.__setstate__({**state, "__dict__": fields, "__pydantic_private__": private})
    return connected


def _client_kwargs(llm: Gemini, account: Account) -> dict[str, Any]:
    own = {name: value for name, value in (llm.client_kwargs or {}).items() if name not in _CREDENTIALS}
    own_location = own.pop("location", None)
    kwargs = {**own, **account.client_kwargs()}
    if account.vertex and own_location:
        kwargs["location"] = own_location
    if account.base_url and own.get("http_options") is not None:
        # Left open, for ADK to fill it with the field `base_url`, which it also looks for an API version in.
        options = types.HttpOptions.model_validate(own["http_options"])
        kwargs["http_options"] = options.model_copy(update={"base_url": None})
    return kwargs


def _brings_its_own_service(llm: Gemini) -> bool:
    """ADK's Apigee model is a Gemini by inheritance alone: proxy and credentials are its own."""
    return any(cls.__module__ == "google.adk.models.apigee_llm" for cls in type(llm).__mro__)
