"""An XCom backend that reads the innermost dict first, as that of object storage does."""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk.bases.xcom import BaseXCom


class InnerFirst(BaseXCom):
    @staticmethod
    def serialize_value(value: Any, **where: Any) -> str:  # type: ignore[override]
        from airflow.utils.json import XComEncoder

        return json.dumps(value, cls=XComEncoder)

    @staticmethod
    def deserialize_value(result: Any) -> Any:
        from airflow.utils.json import XComDecoder

        return json.loads(result, cls=XComDecoder)
